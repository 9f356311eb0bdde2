# The program `femtile` and the Python package, built from these sources:
#
#     docker build -t femtile .
#     docker run --rm -v "$PWD:/work" femtile femtile solve case.toml
#
# `--gpus all` gives the container the GPUs of the host; the compiler of kernels is in the image, the driver is the host's.

FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /tools && /tools/bin/pip install --no-cache-dir 'maturin>=1.9.4,<2'
WORKDIR /femtile
COPY . .
RUN cargo install --locked --path crates/femtile-cli --root /built
RUN /tools/bin/maturin build --release --locked --strip --compatibility linux \
    --manifest-path crates/femtile-python/Cargo.toml --out /built/wheels

FROM python:3.13-slim-bookworm
COPY --from=build /built /built
RUN install /built/bin/femtile /usr/local/bin/ \
    && pip install --no-cache-dir "$(ls /built/wheels/*.whl)[cuda,meshio,scipy]" \
    && rm -r /built \
    && useradd --create-home femtile
USER femtile
WORKDIR /work
CMD ["femtile", "--help"]
