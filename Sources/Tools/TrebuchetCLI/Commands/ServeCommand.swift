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
import TrebuchetTokens
import WebSockets

/// `trebuchet serve`: hosts the services, and the example actors on request.
enum ServeCommand {
    static let spec = CommandSpec(
        name: "serve",
        summary: "host the services; with --examples also the actors todos, counter and game",
        options: ServeOptions.all,
        discussion: """
            Each option may also be set by a variable, such as TREBUCHET_TLS_CERT for --tls-cert (true or false for an
            option without a value), or in the file of --config. The command line comes before variables, and these
            before the file; 'trebuchet config show' prints the result.
            Prints its address. GET /healthz returns 200; --admin opens an HTTP endpoint with
            metrics, readiness and liveness; --admin-socket is the socket of the command 'trebuchet admin'.
            Serves pages over HTTP, readable by every client of the port: the files of --static, /trebuchet.js,
            /trebuchet-services.js, and with --examples, at /, a page for the actor todos.
            SIGHUP reloads certificates, rules and the file of --config; invalid files leave the current ones active.
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

    static func httpOrigins(_ list: String) throws(UsageError) -> Set<String> {
        let texts = list.split(separator: ",", omittingEmptySubsequences: false).map { String($0.drop { $0 == " " }) }
        for text in texts where WebOrigin(text) == nil {
            throw UsageError(
                "--http-origins: '\(text)' is not an origin; write scheme://host or scheme://host:port, such as http://localhost:3000"
            )
        }
        return Set(texts)
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
        HostName.withoutBrackets(arguments.effective("--host") ?? "")
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
        guard let path = arguments.string("--data") else { return nil }
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

    private static func run(_ commandLine: ParsedArguments) async throws {
        let configuration = try ServeConfiguration(commandLine)
        do {
            try await run(configuration, commandLine)
        } catch let error as UsageError {
            throw configuration.arguments.withOrigin(error)
        }
    }

    private static func run(_ configuration: ServeConfiguration, _ commandLine: ParsedArguments) async throws {
        let arguments = configuration.arguments
        let host = host(arguments)
        let port = try arguments.int("--port") ?? 0
        let reactors = try arguments.int("--reactors")
        let requiresClerk = arguments.has("--bench-callers")
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
        let hasCertificates =
            tls != nil || ["--cluster-certificate", "--admin-tls-cert"].contains { arguments.string($0) != nil }
        let readsAgain = hasCertificates || arguments.has("--rules") || arguments.has("--config")
        signals.onHangUp {
            if !readsAgain { operators.logNotice("SIGHUP: no certificates or rules to reload") }
        }
        var transport: ServerTransport = .webSocket(host: host, port: port, tls: tls)
        if arguments.has("--compression") { transport = transport.compressed() }
        for warning in configuration.warnings { operators.logLine(.warning, "warning: \(warning)") }
        // Before it waits for the store or creates one.
        logWarnings(of: try HostedServices.rules(at: arguments.string("--rules")), operators)
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
        access.cors = try arguments.string("--http-origins").map { (list) throws(UsageError) in
            CORSPolicy(origins: try Self.httpOrigins(list))
        }
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
        if readsAgain {
            let reload = reload(arguments, from: commandLine, services, of: server, operators)
            signals.onHangUp {
                let changed = reload.run()
                if hasCertificates { reloadCertificates(of: server, operators) }
                if !changed.contains("--rules") { reload.repeatAction("--rules") }
            }
        }
        let url = "\(tls == nil ? "ws" : "wss")://\(address)"
        let pageURL = "\(tls == nil ? "http" : "https")://\(address)/"
        let ofBench = arguments.has("--bench") ? ["board", "bank", "orders"] : []
        let names = (hostsExamples ? ExampleActors.names : []) + ofBench + services.names
        let list = names.isEmpty ? "nothing" : names.joined(separator: ", ")
        Console.announce(
            "trebuchet serves \(list) on \(url) (health: \(pageURL)healthz; version \(TrebuchetVersion.number))")
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

    /// Returns the actions for SIGHUP: all other options take effect at the start only.
    private static func reload(
        _ arguments: ParsedArguments, from commandLine: ParsedArguments, _ services: HostedServices,
        of server: TrebuchetServer, _ operators: OperatorOptions
    ) -> ServeReload {
        var actions: [String: ServeReload.Action] = [
            "--rules": { new in
                let rules = try services.replaceRules(from: new.string("--rules"))
                operators.logNotice("rules reloaded")
                logWarnings(of: rules, operators)
            }
        ]
        if operators.spans != nil {
            actions["--trace-sample"] = { new in
                server.setTraceSamplingRatio(try new.double("--trace-sample") ?? 0)
            }
        }
        return ServeReload(arguments, actions: actions) {
            try ServeConfiguration(commandLine).arguments
        } log: {
            operators.logLine($0, $1)
        }
    }

    private static func reloadCertificates(of server: TrebuchetServer, _ operators: OperatorOptions) {
        do {
            try server.reloadCertificates()
            operators.logNotice("certificates reloaded")
        } catch {
            operators.logLine(.error, "certificates not reloaded; the current ones stay active: \(error)")
        }
    }
}
