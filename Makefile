# Everything this project needs, it gets itself: Rust, Debian's package manager and nothing else are assumed.

PG_BIN := $(lastword $(sort $(wildcard /usr/lib/postgresql/*/bin)))
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: run install test test-interop interop clients bench console screenshots e2e postgres ripgrep fd git chromium sandbox-tools python-venv python docs clean

# Builds the console and the server quickly and starts it with SQLite in ./data. The server creates the Python environment
# of the data tools while it runs; all other tools work without it, and everything but the console works without Node.js.
run:
	@$(MAKE) --no-print-directory console || echo "continuing without the web console" >&2
	@$(MAKE) --no-print-directory python-venv || echo "continuing without python3-venv" >&2
	@[ -x target/fast-build/toolrest ] || echo "Building the server. The first build takes some minutes on two cores."
	cargo build --locked --profile fast-build --package toolrest
	TOOLREST__RUN__HOST_TOOLCHAINS=$${TOOLREST__RUN__HOST_TOOLCHAINS:-true} target/fast-build/toolrest serve --setup-python $(ARGS)

# Puts the command on the path, for the commands of the documentation.
install:
	cargo install --path crates/toolrest --locked --profile fast-build $(ARGS)

# Installs what is missing, then checks formatting, lints and behaviour. Everything is compiled twice: by clippy, which
# generates no code, and for the tests, which the Python environment is set up with.
test: postgres git sandbox-tools python-venv console chromium
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- --deny warnings
	cargo test --workspace --locked --no-run
	target/debug/toolrest setup python --to target/python
	cargo test --workspace --locked
	cd web && npm run --silent e2e

# Builds the web console into web/dist, which the server embeds when it is built. Does nothing if it is up to date.
WEB_SOURCES := $(shell find web/src web/build web/index.html web/package.json web/vite.config.ts web/svelte.config.js web/tsconfig.json -type f 2>/dev/null)
console: web/dist/site/index.html

web/dist/site/index.html: web/node_modules/.package-lock.json $(WEB_SOURCES)
	cd web && npm run --silent build
	@touch $@

web/node_modules/.package-lock.json: web/package-lock.json
	@if ! command -v npm >/dev/null 2>&1; then \
		echo "npm not found: installing Debian's nodejs and npm"; \
		$(SUDO) apt-get update -q && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy nodejs npm; \
	fi
	@node -e '$(NODE_CHECK)' || { echo "Node.js 20.19, 22.12 or later with npm is needed for the web console: https://nodejs.org/" >&2; exit 1; }
	cd web && npm ci --no-audit --no-fund
	@touch $@

NODE_CHECK := const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1)

# The tests of the console in Chromium, against target/debug/toolrest. `make e2e ARGS=e2e/approvals.test.mjs` runs some.
e2e: console chromium python-venv
	cargo build --locked --package toolrest
	target/debug/toolrest setup python --to target/python
	cd web && $(if $(ARGS),node --test --test-concurrency=1 $(ARGS),npm run --silent e2e)

# Writes a picture of every page of the console in both themes to web/screenshots.
screenshots: console chromium python-venv
	cargo build --locked --package toolrest
	target/debug/toolrest setup python --to target/python
	cd web && npm run --silent screenshots

# Tests the interfaces with programs of others: the suite, the inspector and the Python client of the Model Context Protocol,
# the libraries of those who make models, generated requests by the OpenAPI description, GitHub's description of its API,
# and our own clients.
# The server is built as `make test` builds it: alone, its dependencies would be compiled again with other features.
test-interop: sandbox-tools interop
	cargo test --workspace --locked --no-run
	target/interop/python/bin/python -m pytest interop --quiet -p no:cacheprovider --durations 5 $(ARGS)

# Installs those programs below target/, in the versions of the lock files in interop/.
INTEROP := target/interop
interop: $(INTEROP)/python/installed $(INTEROP)/npm/installed $(INTEROP)/github/installed

$(INTEROP)/python/installed: interop/requirements.txt
	@$(MAKE) --no-print-directory python-venv
	rm -rf $(INTEROP)/python
	/usr/bin/python3 -I -m venv $(INTEROP)/python
	$(INTEROP)/python/bin/pip install --quiet --disable-pip-version-check --requirement interop/requirements.txt
	touch $@

$(INTEROP)/npm/installed: interop/package.json interop/package-lock.json
	@if ! command -v npm >/dev/null 2>&1; then \
		echo "npm not found: installing Debian's npm"; \
		$(SUDO) apt-get update -q && \
		$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends npm; \
	fi
	rm -rf $(INTEROP)/npm && mkdir -p $(INTEROP)/npm
	cp interop/package.json interop/package-lock.json $(INTEROP)/npm
	cd $(INTEROP)/npm && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

$(INTEROP)/github/installed: interop/github/package.json interop/github/package-lock.json $(INTEROP)/npm/installed
	rm -rf $(INTEROP)/github && mkdir -p $(INTEROP)/github
	cp interop/github/package.json interop/github/package-lock.json $(INTEROP)/github
	cd $(INTEROP)/github && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

# Rewrites the types of the clients from the OpenAPI description.
clients: interop
	cargo build --locked --package toolrest
	target/interop/python/bin/python interop/generate_clients.py

# Measures the release build on this machine and writes docs/benchmarks.md. `make bench ARGS=--large` also searches a
# workspace of 2 GB.
bench: postgres ripgrep fd git $(INTEROP)/npm/installed
	cargo build --release --locked --package toolrest --package toolrest-bench
	target/release/toolrest-bench --toolrest target/release/toolrest --out docs/benchmarks.md $(ARGS)

# PostgreSQL from Debian's packages, for the tests; they start private clusters of their own.
postgres:
	@if ! command -v initdb >/dev/null 2>&1 && [ ! -x "$(PG_BIN)/initdb" ]; then \
		echo "initdb not found: installing Debian's postgresql"; \
		$(SUDO) apt-get update -q && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy postgresql; \
	fi

# ripgrep from Debian's packages, which the benchmarks of search are measured against.
ripgrep:
	@if ! command -v rg >/dev/null 2>&1; then \
		echo "rg not found: installing Debian's ripgrep"; \
		$(SUDO) apt-get update -q && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy ripgrep; \
	fi

# fd from Debian's packages, which the benchmarks of finding files are measured against.
fd:
	@if ! command -v fdfind >/dev/null 2>&1; then \
		echo "fdfind not found: installing Debian's fd-find"; \
		$(SUDO) apt-get update -q && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy fd-find; \
	fi

# git from Debian's packages, which the tests of patches are compared with.
git:
	@if ! command -v git >/dev/null 2>&1; then \
		echo "git not found: installing Debian's git"; \
		$(SUDO) apt-get update -q && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy git; \
	fi

# Chromium from Debian's packages, for the tests of the console.
chromium:
	@if [ ! -x /usr/bin/chromium ]; then \
		echo "chromium not found: installing Debian's chromium"; \
		$(SUDO) apt-get update -q && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy chromium; \
	fi

# The programs that the tests of the sandbox run in it, from Debian's packages: a job sees nothing outside of /usr.
SANDBOX_TOOLS := python3 gcc:gcc node:nodejs sqlite3 setpriv:util-linux tar git
sandbox-tools:
	@missing=""; for tool in $(SANDBOX_TOOLS); do \
		[ -x "/usr/bin/$${tool%%:*}" ] || missing="$$missing $${tool##*:}"; \
	done; \
	if [ -n "$$missing" ]; then \
		echo "installing Debian's$$missing"; \
		$(SUDO) apt-get update -q && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy $$missing; \
	fi

# What Debian's Python lacks to make virtual environments.
python-venv:
	@if ! /usr/bin/python3 -I -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "installing Debian's python3-venv"; \
		$(SUDO) apt-get update -q && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy python3-venv; \
	fi

# The Python environment of the data tools, for single tests; `make test` sets it up itself. The command does nothing if
# the environment is complete.
python: python-venv
	cargo run --locked --package toolrest -- setup python --to target/python

# Rewrites the reference pages from the code and from calls to a real server; a test fails when they are out of date.
docs: python
	TOOLREST_WRITE_DOCS=1 cargo test --workspace --test it reference

clean:
	cargo clean
