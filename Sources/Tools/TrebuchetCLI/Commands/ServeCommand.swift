import Benchmarks
import Commands
import Glibc
import Platform
import Trebuchet
import TrebuchetCluster
import TrebuchetNodes
import TrebuchetRedis
import TrebuchetServices
import TrebuchetStore
import TrebuchetTelemetry
import WebSockets

/// `trebuchet serve`: hosts the services, and the example actors on request.
enum ServeCommand {
    static let spec = CommandSpec(
        name: "serve",
        summary: "host the services; with --examples also the actors todos, counter and game",
        options: [
            OptionSpec("--host", "HOST", "address to listen on; :: for all IPv6 and IPv4 addresses (127.0.0.1)"),
            OptionSpec("--port", "PORT", "port to listen on; 0 selects a free one (8080)"),
            OptionSpec("--tls-cert", "FILE", "serve wss with this certificate chain (PEM); SIGHUP reloads it"),
            OptionSpec("--tls-key", "FILE", "private key of the chain (PEM)"),
            OptionSpec("--tls-client-ca", "FILE", "require client certificates of these authorities"),
            OptionSpec(
                "--origins", "LIST",
                "allowed origins of web pages: http://localhost:3000,https://app.example, or * for all (the server's host "
                    + "and port)"),
            OptionSpec(
                "--trusted-proxies", "LIST",
                "addresses and ranges whose X-Forwarded-For is trusted: 127.0.0.1,10.0.0.0/8 (none)"),
            OptionSpec(
                "--static", "DIR", "serve the files of this folder, except names that begin with a dot"),
            OptionSpec(
                "--http-calls", nil,
                "accept calls over HTTP: POST /call/ACTOR/METHOD with a JSON array of the arguments"),
            OptionSpec(
                "--schema", nil,
                "publish the hosted actors at /schema.json (loopback only; disabled with --origins, "
                    + "--trusted-proxies or another host)"),
            OptionSpec(
                "--data", "FILE",
                "persist states and services in this SQLite file, created if absent; with --cluster, the node's own actors (memory)"
            ),
            OptionSpec(
                "--standby", nil,
                "wait while another process uses the file of --data, then take it over"),
            OptionSpec(
                "--cluster", "URL",
                "join the cluster at this coordination store: redis://, rediss://, redis+sentinel:// or redis+cluster://"
            ),
            OptionSpec("--node", "NAME", "unique name of this node; required with --cluster"),
            OptionSpec(
                "--node-address", "HOST:PORT",
                "address for direct messages of other nodes, over mutual TLS (all through the store)"
            ),
            OptionSpec(
                "--cluster-certificate", "FILE",
                "certificate of this node for --node-address, from 'cluster init' (made at start); SIGHUP reloads it"),
            OptionSpec("--cluster-key", "FILE", "private key of the certificate (PEM)"),
            OptionSpec("--cluster-authority", "FILE", "certificate authorities of the other nodes (PEM)"),
            OptionSpec(
                "--after-data-loss", "WHAT",
                "after data loss in the store: end, or continue with the remaining data; not with auth (end)"
            ),
            OptionSpec(
                "--cluster-wait", "SECONDS",
                "time for which the start waits for a store that does not respond (30)"),
            OptionSpec(
                "--show-errors", nil,
                "send the text of non-Codable errors to clients (logged under a number)"),
            OptionSpec("--compression", nil, "compress messages from 1 KiB with clients that offer it"),
            OptionSpec("--reactors", "N", "reactor threads (one per core)"),
            OptionSpec(
                "--examples", nil,
                "host the example actors todos, counter, game and counters/*, which every client may call"),
            OptionSpec(
                "--bench", nil,
                "host the actors of 'bench' (board, bank, orders, boards/*, meters/*), and no services"),
            OptionSpec(
                "--bench-callers", nil,
                "with --bench: identify callers and authorize each call"),
            OptionSpec(
                "--torment", nil,
                "host the actors of scripts/stress torment and a view of counters; loopback only"
            ),
        ] + TokenOptions.specs + OperatorOptions.options + HostedServices.options,
        discussion: """
            Prints its address. GET /healthz returns 200; --admin opens an HTTP endpoint with
            metrics, readiness and liveness; --admin-socket is the socket of the command 'trebuchet admin'.
            Serves pages over HTTP, readable by every client of the port: the files of --static, /trebuchet.js,
            /trebuchet-services.js, and with --examples, at /, a page for the actor todos.
            SIGHUP reloads certificates and rules; invalid files leave the current ones active.
            SIGINT and SIGTERM drain and exit with 0; a second one exits immediately with 130 or 143.
            Without --origins only web pages of this host and port are admitted, and at a loopback address
            only by a name such as localhost. Non-browser clients are unaffected.
            Sign-in codes are sent with --mail-command or --smtp, or printed on standard error.
            """,
        run: run)

    /// Exposes the actors that `bench` calls, beside the examples.
    private static func exposeForBench(on server: TrebuchetServer) async {
        let system = server.actorSystem
        await server.expose(Board(actorSystem: system), as: "board")
        await server.expose(Bank(actorSystem: system), as: "bank")
        await server.expose(Orders(actorSystem: system), as: "orders")
        server.expose(Board.self, as: "boards/*", placement: .cluster) { _ in Board(actorSystem: system) }
        server.expose(Meter.self, as: "meters/*", placement: .cluster) { _ in Meter(actorSystem: system) }
    }

    static func origins(_ list: String) throws(UsageError) -> Set<String> {
        var origins: Set<String> = []
        for part in list.split(separator: ",", omittingEmptySubsequences: false) {
            let text = String(part.drop { $0 == " " })
            guard text == "*" || WebOrigin(text) != nil else {
                throw UsageError(
                    "--origins: '\(text)' is not an origin; write scheme://host or scheme://host:port, such as http://localhost:3000, or "
                        + "* for all")
            }
            origins.insert(text)
        }
        return origins
    }

    static func trustedProxies(_ list: String) throws(UsageError) -> Set<String> {
        let texts = list.split(separator: ",", omittingEmptySubsequences: false).map { String($0.drop { $0 == " " }) }
        do {
            _ = try TrustedProxies(texts)
        } catch {
            throw UsageError("--trusted-proxies: \(error.message)")
        }
        return Set(texts)
    }

    /// The address of `--host`, without the brackets that URLs have around IPv6 addresses.
    private static func host(_ arguments: ParsedArguments) -> String {
        HostName.withoutBrackets(arguments.string("--host") ?? "127.0.0.1")
    }

    /// Adds the pages of the server.
    private static func addPages(_ arguments: ParsedArguments, withStart: Bool, to server: TrebuchetServer)
        throws(UsageError)
    {
        if let folder = arguments.string("--static") {
            do {
                server.servePages(try .folder(folder))
            } catch {
                throw UsageError("--static: \(error.message)")
            }
        }
        server.servePages(.clientLibrary)
        // A folder has its own start page.
        if withStart, arguments.string("--static") == nil { server.servePages(.startPage) }
        let isForOthers = arguments.string("--origins") != nil || arguments.string("--trusted-proxies") != nil
        let host = host(arguments)
        if arguments.has("--schema") {
            server.serveSchema(to: .allClients)
        } else if !isForOthers, ["127.0.0.1", "::1", "localhost"].contains(host) {
            server.serveSchema(to: .localClients)
        }
    }

    private static func store(_ arguments: ParsedArguments, _ operators: OperatorOptions) async throws -> SQLiteStore? {
        guard let path = arguments.string("--data") else {
            guard !arguments.has("--standby") else {
                throw UsageError("--standby requires --data")
            }
            return nil
        }
        var options = SQLiteStore.Options()
        options.onProgress = { progress in
            operators.logNotice("checking \(path): \(progress.percent)% of \(progress.totalBytes >> 20) MiB")
        }
        guard arguments.has("--standby") else {
            do throws(StateStoreError) {
                // The check of a large file takes minutes; signals need a thread of the pool meanwhile.
                return try await onThread { [options] () throws(StateStoreError) in
                    try SQLiteStore(path: path, options: options)
                }
            } catch {
                guard error.code == .inUse else { throw error }
                throw StateStoreError(
                    .inUse, "\(error.message); stop that process, or pass --standby to take over when it ends")
            }
        }
        return try await SQLiteStore.waitUntilAvailable(path: path, options: options) { reason in
            operators.logNotice("standing by: \(reason.message)")
        }
    }

    private static func run(_ arguments: ParsedArguments) async throws {
        let host = host(arguments)
        let port = try arguments.int("--port", in: 0...65535) ?? 8080
        let reactors = try arguments.int("--reactors", in: 1...1024)
        let requiresClerk = arguments.has("--bench-callers")
        guard !requiresClerk || arguments.has("--bench") else {
            throw UsageError("--bench-callers requires --bench")
        }
        let origins = try arguments.string("--origins").map(Self.origins)
        let proxies = try arguments.string("--trusted-proxies").map(Self.trustedProxies) ?? []

        let tls = try TLSOptions.server(arguments)
        let operators = try OperatorOptions(arguments, tls: tls)
        defer { operators.log?.flush() }
        let signals = ShutdownSignals(secondSignalLoss: TrebuchetServer.secondSignalLoss) { line in
            operators.logNotice(line)
            operators.log?.flush()
        }
        // A start has nothing to drain, however long it takes.
        signals.onFirst {
            operators.log?.flush()
            exit(0)
        }
        // SIGHUP never ends the process, even if there is nothing to reload.
        let hasCertificates = tls != nil || arguments.string("--cluster-certificate") != nil
        let readsAgain = hasCertificates || arguments.string("--rules") != nil
        signals.onHangUp {
            if !readsAgain { operators.logNotice("SIGHUP: no certificates or rules to reload") }
        }
        var transport: ServerTransport = .webSocket(host: host, port: port, tls: tls)
        if arguments.has("--compression") { transport = transport.compressed() }
        // Before it waits for the store or creates one.
        logWarnings(of: try HostedServices.rules(arguments), operators)
        try HostedServices.checkMailCommand(arguments)
        let tokens = try TokenOptions.issuers(arguments, log: operators.commandLog)
        let file = try await store(arguments, operators)
        let isTormented = arguments.has("--torment")
        if isTormented { try AdversarialTestActors.check(host: host) }
        let cluster = try await ClusterCommand.membership(arguments) { operators.logLine($0, $1) }
        var services = try await HostedServices(
            arguments, store: file ?? MemoryStore(), engine: cluster?.1, log: operators.commandLog)
        var access = services.access
        access.origins = origins
        if let tokens {
            access.authenticate = AccessPolicy.jsonWebTokens(tokens)
            // Wrong options have a log line before the first client connects.
            Task { await tokens.refreshKeys() }
        }
        if requiresClerk {
            access.authenticate = { _ in Principal(id: "bench", roles: ["clerk"]) }
            access.authorize = { caller, _, _ in caller?.principal?.roles.contains("clerk") == true }
        }
        access.trustedProxies = proxies
        access.acceptsHTTPCalls = arguments.has("--http-calls")
        let hostsExamples = arguments.has("--examples")
        let limits = hostsExamples ? ExampleActors.limits : ServerLimits()
        let server = TrebuchetServer(
            transport: transport, reactors: reactors,
            limits: isTormented ? AdversarialTestActors.limits : limits,
            access: access, store: file, cluster: cluster?.0, showsErrorText: arguments.has("--show-errors"),
            log: operators.serverLog)
        if isTormented { await AdversarialTestActors.expose(on: server) }
        if hostsExamples { await ExampleActors.expose(on: server) }
        if arguments.has("--bench") { await exposeForBench(on: server) }
        await services.expose(on: server)
        try addPages(arguments, withStart: hostsExamples, to: server)
        // In a cluster the file does not have the shared services, which the admin socket manages.
        let admin = try services.openAdminSocket(arguments, on: server, data: cluster == nil ? file?.path : nil)
        defer { admin?.close() }
        let operatorLines = try operators.open(on: server)
        let address = try await server.start()
        signals.onFirst {
            operators.logNotice("draining (signal again to exit immediately)")
            await server.shutdown(delay: operators.drainDelay, drain: operators.drain)
        }
        let url = "\(tls == nil ? "ws" : "wss")://\(address)"
        let pageURL = "\(tls == nil ? "http" : "https")://\(address)/"
        let ofBench = arguments.has("--bench") ? ["board", "bank", "orders"] : []
        let names = (hostsExamples ? ExampleActors.names : []) + ofBench + services.names
        let list = names.isEmpty ? "nothing" : names.joined(separator: ", ")
        Console.announce("trebuchet serves \(list) on \(url) (health: \(pageURL)healthz)")
        let atEngine =
            cluster.map { _ in "\(services.sharedParts) persisted in the coordination store; all else " } ?? ""
        Console.announce(
            "state: \(atEngine)"
                + (file.map { "persisted in \($0.path)" }
                    ?? "in memory, lost when this process ends; persist it with --data FILE"))
        if let node = cluster?.0.node {
            Console.announce(
                "cluster: node \(node.name); shared by all nodes: \(services.sharedParts); all else is local to each node"
            )
        }
        if tokens != nil {
            Console.announce("clients: only with a token of \(LogLine.of(arguments.string("--token-issuer") ?? ""))")
        }
        for line in services.inForce { Console.announce(line) }
        if let admin { Console.announce("admin socket: \(admin.path), for 'trebuchet admin' on this machine") }
        for line in operatorLines { Console.announce(line) }
        if let folder = arguments.string("--static") {
            Console.announce("pages: the files of \(folder), at \(pageURL)")
        }
        if access.acceptsHTTPCalls { Console.announce("http: calls at \(pageURL)call/ACTOR/METHOD") }
        if hostsExamples {
            Console.announce("open: \(pageURL) in a browser")
            Console.announce("try: trebuchet observe --url \(url) todos observeState")
            Console.announce("and: trebuchet call --url \(url) todos 'addTodo(title:)' '\"Milk\"'")
        } else if !arguments.has("--bench"), !isTormented {
            Console.announce("examples: none; --examples hosts \(ExampleActors.names.joined(separator: ", "))")
        }
        if hasCertificates {
            signals.onHangUp {
                do {
                    try server.reloadCertificates()
                    operators.logNotice("certificates reloaded")
                } catch {
                    operators.logLine(.error, "certificates not reloaded; the current ones stay active: \(error)")
                }
            }
        }
        if services.rulesFile != nil { readRules(of: services, at: signals, operators) }
        // `serve` handles signals itself, to log them.
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(
                try await server.run(shutdownOn: [], delay: operators.drainDelay, drain: operators.drain))
        } catch {
            outcome = .failure(error)
        }
        await cluster?.1.close()
        admin?.close()
        await file?.close()
        // Only the end of the process waits for the collector here.
        await operators.spans?.flush()
        try outcome.get()
    }

    private static func logWarnings(of rules: RulesFile, _ operators: OperatorOptions) {
        for warning in rules.warnings { operators.logLine(.warning, "warning: \(LogLine.of("\(warning)"))") }
    }

    private static func readRules(
        of services: HostedServices, at signals: ShutdownSignals, _ operators: OperatorOptions
    ) {
        signals.onHangUp {
            do throws(RulesFileError) {
                let rules = try services.reloadRules()
                operators.logNotice("rules reloaded")
                logWarnings(of: rules, operators)
            } catch {
                for problem in error.problems {
                    operators.logLine(
                        .error, "rules not reloaded; the current ones stay active: \(LogLine.of("\(problem)"))")
                }
            }
        }
    }
}
