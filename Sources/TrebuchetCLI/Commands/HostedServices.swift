import Commands
@preconcurrency import Glibc
import Trebuchet
import TrebuchetCluster
import TrebuchetServices

/// The services that `serve` hosts: all of them, unless `--services` names some, or the server is there to be measured.
struct HostedServices {
    static let options = [
        OptionSpec(
            "--services", "NAMES",
            "the services to host, separated by commas: \(known.joined(separator: ", ")), or none (all)"),
        OptionSpec(
            "--rules", "FILE",
            "who may do what with collections and rooms (Docs/Rules.md); SIGHUP reads it again (what 'rules show' prints)"
        ),
        OptionSpec(
            "--admin-socket", "PATH",
            "where 'trebuchet admin' finds the server (beside the file of --data, with .admin behind its name)"),
        OptionSpec(
            "--mail-command", "COMMAND",
            "auth: hand mails with codes to this program, as 'sendmail -t', on its standard input; it has the address and the "
                + "code in TREBUCHET_MAIL_TO and TREBUCHET_MAIL_CODE"),
        OptionSpec("--smtp", "HOST:PORT", "auth: hand mails with codes to this relay"),
        OptionSpec("--oidc", "FILE", "auth: providers whose ID tokens sign somebody in: a list in JSON (none)"),
        OptionSpec("--mail-from", "ADDRESS", "auth: the sender of mails (trebuchet@localhost)"),
    ]

    private static let known = [AuthService.name, RoomHost.name, CollectionHost.name]

    let names: [String]
    private let accounts: Accounts?
    private let store: any StateStore
    private let say: @Sendable (ServerEvent.Level, String) -> Void
    /// The file of the rules; nil without one.
    let rulesFile: String?
    private let rules: RuleBook
    private let isTormented: Bool
    private(set) var collections: CollectionHost?
    private(set) var rooms: RoomHost?

    /// - Parameters:
    ///   - store: where accounts and documents are kept.
    ///   - engine: where accounts are kept instead, together with other nodes.
    ///   - say: told lines for who operates the server.
    init(
        _ arguments: ParsedArguments, store: any StateStore, engine: (any ClusterTables)? = nil,
        say: @escaping @Sendable (ServerEvent.Level, String) -> Void
    ) async throws {
        self.store = store
        self.say = say
        isTormented = arguments.has("--torment")
        let all = arguments.has("--bench") || isTormented ? "none" : Self.known.joined(separator: ",")
        names = try Self.names(arguments.string("--services") ?? all)
        rulesFile = arguments.string("--rules")
        rules = try Self.rules(arguments)
        if rulesFile != nil, !names.contains(CollectionHost.name), !names.contains(RoomHost.name) {
            throw UsageError("--rules belongs to --services collections,rooms")
        }
        guard names.contains(AuthService.name) else {
            if let option = ["--mail-command", "--smtp", "--mail-from", "--oidc"].first(where: arguments.has) {
                throw UsageError("\(option) belongs to --services auth")
            }
            accounts = nil
            return
        }
        let providers = try arguments.string("--oidc").map(ProviderFile.providers) ?? []
        let mailer = try Self.mailer(arguments)
        let limits = isTormented ? Torment.authLimits : AuthLimits()
        if let engine {
            if arguments.string("--after-data-loss") == "continue" {
                throw UsageError("--after-data-loss continue: a node with accounts ends; leave auth out of --services")
            }
            accounts = try await Accounts(
                engine: engine, mailer: mailer, providers: providers, limits: limits, report: say)
        } else {
            accounts = try await Accounts(
                store: store, mailer: mailer, providers: providers, limits: limits, report: say)
        }
    }

    /// What nodes of a cluster have together.
    var sharedParts: String {
        let parts = ["counters/NAME"] + (names.isEmpty ? [] : ["rooms", "collections"])
        return (parts + (accounts == nil ? [] : ["accounts"])).joined(separator: ", ")
    }

    /// What the server is made with.
    var access: AccessPolicy {
        var access = accounts?.accessPolicy ?? .open
        if !names.isEmpty { access.identifiesCallers = true }
        return access
    }

    /// The rules of a command line, which are looked at before anything is begun.
    static func rules(_ arguments: ParsedArguments) throws(RuleBookError) -> RuleBook {
        try arguments.string("--rules").map { path throws(RuleBookError) in try RuleBook(contentsOfFile: path) }
            ?? RuleBook()
    }

    /// What `serve` says of it when it starts.
    var inForce: [String] {
        guard names.contains(CollectionHost.name) || names.contains(RoomHost.name) else { return [] }
        guard let rulesFile else {
            return ["rules: none, everybody reads, creates and joins; --rules FILE says otherwise"]
        }
        return ["rules: \(LogLine.of(rulesFile)), \(rules.collectionCount) of collections, \(rules.roomCount) of rooms"]
    }

    /// Reads the rules again and puts them in force; throws, and leaves the old ones in force, when they are no good.
    func readRulesAgain() throws(RuleBookError) -> RuleBook {
        guard let rulesFile else { return rules }
        let rules = try RuleBook(contentsOfFile: rulesFile)
        collections?.use(rules)
        rooms?.use(rules)
        return rules
    }

    mutating func expose(on server: TrebuchetServer) async {
        if let accounts {
            await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        }
        if names.contains(RoomHost.name) {
            rooms = RoomHost.expose(
                on: server, rules: rules, limits: isTormented ? Torment.roomLimits : RoomLimits(), placement: .cluster)
        }
        if names.contains(CollectionHost.name) {
            collections = CollectionHost.expose(
                on: server, store: store, rules: rules,
                limits: isTormented ? Torment.collectionLimits : CollectionLimits(), placement: .cluster)
        }
    }

    /// Opens the socket for administrators; nil when there is nothing to look after or no place for it. One that was asked for is
    /// an error when it cannot be made, one that is there by default is not.
    func openAdminSocket(_ arguments: ParsedArguments, on server: TrebuchetServer, data: String?) throws -> AdminSocket?
    {
        guard !names.isEmpty else {
            if arguments.has("--admin-socket") { throw UsageError("--admin-socket belongs to --services") }
            return nil
        }
        func open(_ path: String) throws(AdminSocketError) -> AdminSocket {
            try AdminSocket.open(on: server, at: path, collections: collections, rooms: rooms, accounts: accounts)
        }
        if let path = arguments.string("--admin-socket") { return try open(path) }
        guard let data else { return nil }
        do throws(AdminSocketError) {
            return try open(AdminSocket.path(besideData: data))
        } catch {
            say(.warning, "goes on without a socket for 'trebuchet admin': \(error)")
            return nil
        }
    }

    static func names(_ list: String) throws(UsageError) -> [String] {
        if list == "none" { return [] }
        var names: [String] = []
        for name in list.split(separator: ",").map(String.init) where !names.contains(name) {
            guard known.contains(name) else {
                let hint = NearestMatch.find(name, in: known).map { "; did you mean '\($0)'?" } ?? ""
                throw UsageError("--services: there is no service '\(name)'\(hint)")
            }
            names.append(name)
        }
        return names
    }

    /// Looks whether there is a program to send mails by, before anything is begun.
    static func checkMailCommand(_ arguments: ParsedArguments) throws(UsageError) {
        guard !arguments.has("--smtp"), let command = arguments.string("--mail-command"),
            let program = command.split(separator: " ").first.map(String.init), !isProgram(program)
        else { return }
        let place = program.contains("/") ? "" : " on the PATH"
        throw UsageError("--mail-command \(program): there is no such program\(place)")
    }

    /// Whether there is one to run: at a path, or on the `PATH`.
    private static func isProgram(_ name: String) -> Bool {
        func isThere(_ path: String) -> Bool {
            var about = stat()
            return stat(path, &about) == 0 && about.st_mode & S_IFMT == S_IFREG && Glibc.access(path, X_OK) == 0
        }
        guard !name.contains("/") else { return isThere(name) }
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        return path.split(separator: ":").contains { isThere("\($0)/\(name)") }
    }

    private static func mailer(_ arguments: ParsedArguments) throws(UsageError) -> any MagicCodeMailer {
        let sender = arguments.string("--mail-from") ?? "trebuchet@localhost"
        guard MailAddress.isValid(sender) else { throw UsageError("--mail-from \(sender): this is no mail address") }
        switch (arguments.string("--mail-command"), arguments.string("--smtp")) {
        case (.some, .some): throw UsageError("--mail-command and --smtp: one of them")
        case (let command?, nil):
            let words = command.split(separator: " ").map(String.init)
            guard !words.isEmpty else { throw UsageError("--mail-command names a program") }
            return CommandMailer(words, sender: sender)
        case (nil, let relay?):
            let problem = UsageError("--smtp \(relay): give a host and a port, as 127.0.0.1:25")
            guard let colon = relay.lastIndex(of: ":"), let port = Int(relay[relay.index(after: colon)...]),
                (1...65535).contains(port), colon > relay.startIndex
            else { throw problem }
            let host = relay[..<colon].drop { $0 == "[" }.prefix { $0 != "]" }
            return SMTPMailer(host: String(host), port: port, sender: sender)
        case (nil, nil):
            Console.error(
                "trebuchet serve: codes to sign in are printed here; to send them, use --mail-command or --smtp")
            return ClosureMailer { code, address in
                Console.error("trebuchet serve: code for \(address): \(code)")
            } notify: { notice, address in
                guard case .addressChanged(let other) = notice else { return }
                Console.error("trebuchet serve: to \(address): the account has the address \(other) from now on")
            }
        }
    }
}
