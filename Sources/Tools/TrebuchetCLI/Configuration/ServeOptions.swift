import Commands
import TrebuchetNodes

/// The options of `serve`: the source of its help, of the table in Docs/Reference/CLI.md, of the keys in a configuration file, and of the
/// environment variables.
enum ServeOptions {
    static let file = OptionSpec(
        "--config", "FILE",
        "TOML file with these options, whose keys are the names without '--' (Docs/Guides/Deployment.md); SIGHUP reads it again"
    )

    static let all: [OptionSpec] =
        [file] + listening + storage + OperatorOptions.options + HostedServices.options

    private static let listening: [OptionSpec] =
        [
            OptionSpec(
                "--host", "HOST", "address to listen on; '::' for all IPv6 and IPv4 addresses", default: "127.0.0.1"),
            OptionSpec(
                "--port", "PORT", "port to listen on; 0 selects a free one", default: "8080", form: .integer(0...65_535)
            ),
            OptionSpec("--tls-cert", "FILE", "serve wss with this certificate chain (PEM); SIGHUP reloads it"),
            OptionSpec("--tls-key", "FILE", "private key of the chain (PEM)"),
            OptionSpec(
                "--tls-client-ca", "FILE", "require client certificates of these authorities", requires: "--tls-cert"),
        ] + TokenOptions.specs + [
            OptionSpec(
                "--origins", "LIST", "admitted origins of web pages, such as 'https://app.example', or '*' for all",
                default: "the server's host and port", form: .list,
                check: { list throws(UsageError) in _ = try ServeCommand.origins(list) }),
            OptionSpec(
                "--trusted-proxies", "LIST",
                "addresses and ranges whose X-Forwarded-For is trusted, such as '127.0.0.1,10.0.0.0/8'",
                default: "none",
                form: .list, check: { list throws(UsageError) in _ = try ServeCommand.trustedProxies(list) }),
            OptionSpec("--compression", nil, "compress messages from 1 KiB with clients that offer it"),
            OptionSpec("--reactors", "N", "reactor threads", default: "one per core", form: .integer(1...1_024)),
            OptionSpec("--static", "DIR", "serve the files of this folder, except names that begin with a dot"),
            OptionSpec(
                "--http-calls", nil,
                "accept calls and streams over HTTP: 'POST /call/ACTOR/METHOD', 'GET /observe/ACTOR/STATE' (Docs/Guides/HTTP.md)"
            ),
            OptionSpec(
                "--http-origins", "LIST",
                "exact origins of web pages that may read calls and streams over HTTP, such as 'https://app.example'",
                default: "none", form: .list,
                check: { list throws(UsageError) in _ = try ServeCommand.httpOrigins(list) }),
            OptionSpec(
                "--schema", nil,
                "publish the hosted actors at '/schema.json'",
                default: "loopback only; disabled with --origins, --trusted-proxies or another host"),
            OptionSpec(
                "--show-errors", nil, "send the text of non-Codable errors to clients", default: "logged under a number"
            ),
            OptionSpec(
                "--examples", nil,
                "host the example actors 'todos', 'counter', 'game' and 'counters/*', which every client may call"),
            OptionSpec(
                "--bench", nil,
                "host the actors of 'bench' ('board', 'bank', 'orders', 'boards/*', 'meters/*'), and no services"),
            OptionSpec(
                "--bench-callers", nil, "identify callers and authorize each call, for measurements",
                requires: "--bench"),
            OptionSpec(
                "--torment", nil,
                "host the actors of 'scripts/stress torment' and a view of counters; loopback only"),
        ]

    private static let storage: [OptionSpec] = [
        OptionSpec(
            "--data", "FILE",
            "persist states and services in this SQLite file, created if absent; with --cluster, the node's own actors",
            default: "memory"),
        OptionSpec(
            "--standby", nil, "wait while another process uses the file of --data, then take it over",
            requires: "--data"),
        OptionSpec(
            "--cluster", "URL",
            "join the cluster at this coordination store: 'redis://', 'rediss://', 'redis+sentinel://' or "
                + "'redis+cluster://'; set a URL with a password in TREBUCHET_CLUSTER",
            check: { url throws(UsageError) in try ClusterCommand.checkURL(url) },
            mask: { ClusterCommand.masked($0) }),
        OptionSpec("--node", "NAME", "unique name of this node; required with --cluster", requires: "--cluster"),
        OptionSpec(
            "--node-address", "HOST:PORT", "address for direct messages of other nodes, over mutual TLS",
            default: "all through the store", requires: "--cluster",
            check: { text throws(UsageError) in _ = try ClusterCommand.nodeAddress(text) }),
        OptionSpec(
            "--cluster-certificate", "FILE",
            "certificate of this node for --node-address, from 'cluster init'; SIGHUP reloads it",
            default: "made at start", requires: "--cluster"),
        OptionSpec("--cluster-key", "FILE", "private key of the certificate (PEM)", requires: "--cluster"),
        OptionSpec(
            "--cluster-authority", "FILE", "certificate authorities of the other nodes (PEM)", requires: "--cluster"),
        OptionSpec(
            "--after-data-loss", "WHAT",
            "after data loss in the store: 'end', or 'continue' with the remaining data; not with auth",
            default: "end", form: .choice(DataLossPolicy.allCases.map(\.rawValue)), requires: "--cluster"),
        OptionSpec(
            "--cluster-wait", "SECONDS",
            "time for which the start waits for a store that does not respond; 0 does not wait", default: "30",
            form: .integer(0...86_400), requires: "--cluster"),
    ]
}
