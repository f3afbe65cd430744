//! Doors of the kernel that a job must find shut.

use toolrest_sandbox::Exit;

use crate::scene::Scene;

/// Runs C: what Python's own library would not let through.
async fn compiled(scene: &Scene, body: &str) -> toolrest_sandbox::Report {
    let code = format!(
        "#define _GNU_SOURCE\n#include <stdio.h>\n#include <errno.h>\n#include <unistd.h>\n#include <sched.h>\n\
         #include <sys/syscall.h>\nint main(void){{ {body} }}"
    );
    std::fs::write(scene.folder().join("m.c"), code).unwrap();
    let report = scene.bash("gcc m.c -o m").await;
    assert!(report.success(), "{}", report.stderr.text());
    scene.bash("./m").await
}

#[tokio::test]
async fn the_newest_and_oldest_doors_are_shut() {
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
    let told = Scene::new().told(code).await;
    for line in told.lines() {
        let (name, errnos) = line.split_once(' ').unwrap();
        let wanted = if name == "unknown" { "ENOSYS" } else { "EPERM" };
        assert!(errnos.split(' ').all(|errno| errno == wanted), "{line}");
    }
}

#[tokio::test]
async fn no_namespace_can_be_made_or_entered() {
    let code = "print(*[call(272, flag) for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000)])\n\
                print(*[call(56, flag | 17, 0, 0, 0, 0) for flag in (0x10000000, 0x20000, 0x40000000)])\n\
                print(call(435, 0, 0), call(308, os.open('/proc/self/ns/net', os.O_RDONLY), 0))";
    let told = Scene::new().told(code).await;
    assert_eq!(told, "EPERM EPERM EPERM EPERM\nEPERM EPERM EPERM\nENOSYS EPERM");
}

#[tokio::test]
async fn nothing_can_be_mounted_or_unmounted() {
    let code = "print(call(165, b'none', b'/tmp', b'tmpfs', 0, 0), call(166, b'/workspace', 2), call(155, b'.', b'.'), \
                call(428, -100, b'/usr', 1), call(430, b'tmpfs', 0), call(429, -100, b'', -100, b'', 4), \
                call(442, -100, b'/', 0, 0, 0), call(161, b'/tmp'))";
    let told = Scene::new().told(code).await;
    assert_eq!(told, ["EPERM"; 8].join(" "));
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn the_calls_of_other_architectures_are_refused() {
    let scene = Scene::new();
    let i386 = "int r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(20)); printf(\"%d\\n\", r); return 0;";
    let report = compiled(&scene, i386).await;
    assert_eq!((report.exit, report.stdout.text().as_str()), (Exit::Signal(libc_sigsys()), ""));
    let x32 =
        "errno = 0; long r = syscall(0x40000000 | SYS_getpid); printf(\"%ld %d\\n\", r, errno == ENOSYS); return 0;";
    assert_eq!(compiled(&scene, x32).await.stdout.text(), "-1 1\n");
}

const fn libc_sigsys() -> i32 {
    31
}

#[tokio::test]
async fn a_strange_personality_is_refused_and_the_usual_ones_are_not() {
    let told = Scene::new().told("print(call(135, 0x0400000), call(135, 0xffffffff), call(135, 0x0040000))").await;
    assert_eq!(told, "EPERM ok ok");
}

#[tokio::test]
async fn programs_may_restrict_themselves_further() {
    let told = Scene::new()
        .told("print(call(157, 38, 1, 0, 0, 0), call(317, 2, 0, ctypes.byref(ctypes.c_uint32(0x7fff0000))))")
        .await;
    assert_eq!(told, "ok ok");
}

#[tokio::test]
async fn no_landlock_rule_can_keep_a_file_without_a_name() {
    let code = "attribute = (ctypes.c_uint64 * 1)(4)\nprint(call(444, 0, 0, 1), call(444, attribute, 8, 0), call(445, 3, 1, attribute, 0), call(446, 3, 0))";
    assert_eq!(Scene::new().told(code).await, "ENOSYS ENOSYS ENOSYS ENOSYS");
}

#[tokio::test]
async fn the_hosts_file_systems_are_not_written_out_for_a_job() {
    let told =
        Scene::new().told("print(call(162), call(306, 9999), call(74, os.open('f', os.O_CREAT | os.O_WRONLY)))").await;
    // With no effect, a descriptor that does not exist makes no difference.
    assert_eq!(told, "ok ok ok");
}

#[tokio::test]
async fn locks_and_pipes_are_those_that_can_be_counted() {
    let code = "import fcntl, struct\nf = open('f', 'w'); lock = struct.pack('hhqqi', 1, 0, 0, 1, 0)\n\
                print(attempt(lambda: fcntl.fcntl(f, 37, lock)), attempt(lambda: fcntl.fcntl(f, 38, lock)), \
                attempt(lambda: fcntl.fcntl(f, 6, lock)), attempt(lambda: fcntl.flock(f, 2)))\n\
                r, w = os.pipe(); print(attempt(lambda: fcntl.fcntl(w, 1031, 1 << 20)), attempt(lambda: fcntl.fcntl(w, 1031, 1 << 16)))";
    assert_eq!(Scene::new().told(code).await, "EINVAL EINVAL ok ok\nEPERM ok");
}

#[tokio::test]
async fn the_hosts_pool_of_huge_pages_is_not_for_jobs() {
    let told =
        Scene::new().told("print(call(9, 0, 2 << 20, 3, 0x40022, -1, 0), call(9, 0, 2 << 20, 3, 0x22, -1, 0))").await;
    assert_eq!(told, "EPERM ok");
}
