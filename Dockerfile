# The server, in an image without build tools: docker build -t trebuchet .
# scripts/image runs these steps without a container engine. The image needs neither capabilities nor a writable root file system: run it
# with --read-only --cap-drop ALL --security-opt no-new-privileges, and a volume at /var/lib/trebuchet for --data.

FROM swift:6.3-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends libssl-dev zlib1g-dev libsqlite3-dev libcurl4-openssl-dev pkg-config
WORKDIR /src
COPY . .
RUN swift build -c release --product trebuchet --static-swift-stdlib && strip -o /trebuchet "$(swift build -c release --product trebuchet --static-swift-stdlib --show-bin-path)/trebuchet"

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates libssl3 zlib1g libsqlite3-0 libcurl4 && rm -rf /var/lib/apt/lists/*
RUN groupadd --system --gid 10001 trebuchet && useradd --system --uid 10001 --gid 10001 --create-home --home-dir /var/lib/trebuchet --shell /usr/sbin/nologin trebuchet && chmod 700 /var/lib/trebuchet
# Programs that run with the rights of their owner are not needed.
RUN find / -xdev -type f -perm /6000 -exec chmod a-s {} +
COPY --from=build /trebuchet /usr/local/bin/trebuchet
# A number, because Kubernetes cannot know of a name that it is not root.
USER 10001:10001
WORKDIR /var/lib/trebuchet
EXPOSE 8080
STOPSIGNAL SIGTERM
# The image has no curl, so bash sends the request. A server with TLS needs another check.
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 && head -1 <&3 | grep -q ' 200 '"]
ENTRYPOINT ["trebuchet"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8080"]
