//! Kernel interfaces that a job must not use.

use toolrest_sandbox::Exit;

use crate::fixture::Fixture;

/// Compiles and runs C, for calls that Python's library does not pass through.
async fn compiled(fixture: &Fixture, body: &str) -> toolrest_sandbox::Report {
    let code = format!(
        "#define _GNU_SOURCE\n#include <stdio.h>\n#include <errno.h>\n#include <unistd.h>\n#include <sched.h>\n\
         #include <sys/syscall.h>\nint main(void){{ {body} }}"
    );
    std::fs::write(fixture.folder().join("m.c"), code).unwrap();
    let report = fixture.bash("gcc m.c -o m").await;
    assert!(report.success(), "{}", report.stderr.text());
    fixture.bash("./m").await
}

#[tokio::test]
async fn dangerous_system_calls_are_refused() {
    let code = "buffer = ctypes.create_string_buffer(200)\n\
                print('io_uring', call(425, 8, buffer), call(426, 3, 0, 0, 0, 0), call(427, 3, 0, 0, 0))\n\
                print('bpf', call(321, 0, buffer, 120)); print('perf', call(298, buffer, 0, -1, -1, 0))\n\
                print('userfaultfd', call(323, 0)); print('keyctl', call(250, 1, 0), call(248, b'user', b'a', b'b', 1, -3))\n\
                print('memfd', call(319, b'x', 0), call(447, 0)); print('sysv', call(29, 0, 4096, 0o1600), \
                call(64, 0, 1, 0o1600), call(68, 0, 0o1600)); print('mq', call(240, b'q', 0o102, 0o600, 0))\n\
                print('modules', call(175, 0, 0, b''), call(313, 0, b'', 0)); print('kexec', call(246, 0, 0, 0, 0))\n\
                print('reboot', call(169, 0, 0, 0, 0)); print('syslog', call(103, 3, buffer, 100))\n\
                print('time', call(164, buffer, 0), call(227, 0, buffer)); print('handle', call(303, -100, b'/usr', buffer, \
                buffer, 0), call(304, -100, buffer, 0)); print('fanotify', call(300, 0, 0))\n\
                print('unknown', call(9999), call(156, 0), call(154, 0, buffer, 100))";
    let output = Fixture::new().python_output(code).await;
    for line in output.lines() {
        let (name, errnos) = line.split_once(' ').unwrap();
        let wanted = if name == "unknown" { "ENOSYS" } else { "EPERM" };
        assert!(errnos.split(' ').all(|errno| errno == wanted), "{line}");
    }
}

#[tokio::test]
async fn namespaces_cannot_be_created_or_entered() {
    let code = "print(*[call(272, flag) for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000)])\n\
                print(*[call(56, flag | 17, 0, 0, 0, 0) for flag in (0x10000000, 0x20000, 0x40000000)])\n\
                print(call(435, 0, 0), call(308, os.open('/proc/self/ns/net', os.O_RDONLY), 0))";
    let output = Fixture::new().python_output(code).await;
    assert_eq!(output, "EPERM EPERM EPERM EPERM\nEPERM EPERM EPERM\nENOSYS EPERM");
}

#[tokio::test]
async fn nothing_can_be_mounted_or_unmounted() {
    let code = "print(call(165, b'none', b'/tmp', b'tmpfs', 0, 0), call(166, b'/workspace', 2), call(155, b'.', b'.'), \
                call(428, -100, b'/usr', 1), call(430, b'tmpfs', 0), call(429, -100, b'', -100, b'', 4), \
                call(442, -100, b'/', 0, 0, 0), call(161, b'/tmp'))";
    let output = Fixture::new().python_output(code).await;
    assert_eq!(output, ["EPERM"; 8].join(" "));
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn system_calls_of_other_architectures_are_refused() {
    let fixture = Fixture::new();
    let i386 = "int r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(20)); printf(\"%d\\n\", r); return 0;";
    let report = compiled(&fixture, i386).await;
    assert_eq!((report.exit, report.stdout.text().as_str()), (Exit::Signal(libc_sigsys()), ""));
    let x32 =
        "errno = 0; long r = syscall(0x40000000 | SYS_getpid); printf(\"%ld %d\\n\", r, errno == ENOSYS); return 0;";
    assert_eq!(compiled(&fixture, x32).await.stdout.text(), "-1 1\n");
}

const fn libc_sigsys() -> i32 {
    31
}

#[tokio::test]
async fn only_common_personalities_are_allowed() {
    let output =
        Fixture::new().python_output("print(call(135, 0x0400000), call(135, 0xffffffff), call(135, 0x0040000))").await;
    assert_eq!(output, "EPERM ok ok");
}

#[tokio::test]
async fn programs_may_restrict_themselves_further() {
    let output = Fixture::new()
        .python_output("print(call(157, 38, 1, 0, 0, 0), call(317, 2, 0, ctypes.byref(ctypes.c_uint32(0x7fff0000))))")
        .await;
    assert_eq!(output, "ok ok");
}

#[tokio::test]
async fn landlock_is_not_available_to_programs() {
    let code = "attribute = (ctypes.c_uint64 * 1)(4)\nprint(call(444, 0, 0, 1), call(444, attribute, 8, 0), call(445, 3, 1, attribute, 0), call(446, 3, 0))";
    assert_eq!(Fixture::new().python_output(code).await, "ENOSYS ENOSYS ENOSYS ENOSYS");
}

#[tokio::test]
async fn sync_has_no_effect() {
    let output = Fixture::new()
        .python_output("print(call(162), call(306, 9999), call(74, os.open('f', os.O_CREAT | os.O_WRONLY)))")
        .await;
    // The call has no effect, so an invalid descriptor makes no difference.
    assert_eq!(output, "ok ok ok");
}

#[tokio::test]
async fn uncountable_locks_and_large_pipes_are_refused() {
    let code = "import fcntl, struct\nf = open('f', 'w'); lock = struct.pack('hhqqi', 1, 0, 0, 1, 0)\n\
                print(attempt(lambda: fcntl.fcntl(f, 37, lock)), attempt(lambda: fcntl.fcntl(f, 38, lock)), \
                attempt(lambda: fcntl.fcntl(f, 6, lock)), attempt(lambda: fcntl.flock(f, 2)))\n\
                r, w = os.pipe(); print(attempt(lambda: fcntl.fcntl(w, 1031, 1 << 20)), attempt(lambda: fcntl.fcntl(w, 1031, 1 << 16)))";
    assert_eq!(Fixture::new().python_output(code).await, "EINVAL EINVAL ok ok\nEPERM ok");
}

#[tokio::test]
async fn huge_pages_are_refused() {
    let output = Fixture::new()
        .python_output("print(call(9, 0, 2 << 20, 3, 0x40022, -1, 0), call(9, 0, 2 << 20, 3, 0x22, -1, 0))")
        .await;
    assert_eq!(output, "EPERM ok");
}
