# What people type while working on breakage. `just check` is what CI runs.

default: check

# Everything CI runs, in its order
check:
    .ci/run

test:
    cargo test

fmt:
    cargo fmt --all

lint:
    cargo clippy --all-targets -- -D warnings

deny:
    cargo deny check bans licenses sources

docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps

bench:
    cargo bench

# Matched values per recorded fault, embedded cluster against a real Kubernetes
fidelity:
    cargo test --release --test fidelity -- --nocapture

# What CI does on a real Kubernetes, started on this machine for it (root; minutes). docs/real-tier.md
real-short:
    BREAKAGE_REQUIRE_REAL=1 tests/real/cluster with cargo test --test real -- --nocapture

# All advocate scenarios, 20 kills and every qualification on a real Kubernetes (root; hours)
real:
    BREAKAGE_REQUIRE_REAL=1 BREAKAGE_REAL_WHOLE=1 BREAKAGE_REAL_POLICY=1 BREAKAGE_REAL_PROMETHEUS=1 \
        tests/real/cluster with cargo test --test real -- --nocapture
