import Commands
@preconcurrency import Glibc
import Trebuchet
import TrebuchetCluster
import TrebuchetServices

/// The services that `serve` hosts: all of them, unless `--services` selects some, or the server is for measurements.
struct HostedServices {
    static let options: [OptionSpec] =
        [
            OptionSpec(
                "--services", "NAMES",
                "services to host, separated by commas: \(known.map { "'\($0)'" }.joined(separator: ", ")), or 'none'",
                default: "all; without auth if there is --token-issuer", form: .list,
                check: { list throws(UsageError) in _ = try HostedServices.names(list) }),
            OptionSpec(
                "--rules", "FILE",
                "rules file for collections and rooms (Docs/Reference/Rules.md); SIGHUP reloads it",
                default: "the output of 'rules show'"),
            OptionSpec(
                "--admin-socket", "PATH",
                "Unix socket of the command 'trebuchet admin', independent of --admin",
                default: "the file of --data with the suffix '.admin'"),
            OptionSpec(
                "--mail-command", "COMMAND",
                "auth: program that reads mails with codes on standard input, like 'sendmail -t'; it has the address and the "
                    + "code in TREBUCHET_MAIL_TO and TREBUCHET_MAIL_CODE"),
            OptionSpec("--oidc", "FILE", "auth: JSON list of providers for ID tokens", default: "none"),
            OptionSpec(
                "--mail-from", "ADDRESS", "auth: sender of mails", default: "trebuchet@localhost",
                check: { address throws(UsageError) in
                    guard MailAddress.isValid(address) else {
                        throw UsageError("--mail-from \(address): not a mail address")
                    }
                }),
        ] + MailRelayOptions.specs

    private static let known = [AuthService.name, RoomHost.name, CollectionHost.name]

    let names: [String]
    private let accounts: Accounts?
    private let store: any StateStore
    private let report: @Sendable (ServerEvent.Level, String) -> Void
    /// The path of the rules file; nil without one.
    let rulesFile: String?
    private let rules: RulesFile
    private let isTormented: Bool
    private let hasExamples: Bool
    private(set) var collections: CollectionHost?
    private(set) var rooms: RoomHost?

    /// - Parameters:
    ///   - store: persists accounts and documents.
    ///   - engine: stores accounts instead, shared with other nodes.
    ///   - log: writes lines for the operator.
    init(
        _ arguments: ParsedArguments, store: any StateStore, engine: (any ClusterTables)? = nil,
        log: any ServerEventHandler
    ) async throws {
        self.store = store
        let report: @Sendable (ServerEvent.Level, String) -> Void = { log.handle(.logMessage($0, LogLine.of($1))) }
        self.report = report
        isTormented = arguments.has("--torment")
        hasExamples = arguments.has("--examples")
        // Accounts have their own tokens.
        let hasTokens = arguments.has("--token-issuer")
        let usual = Self.known.filter { $0 != AuthService.name || !hasTokens }
        let all = arguments.has("--bench") || isTormented ? "none" : usual.joined(separator: ",")
        names = try Self.names(arguments.string("--services") ?? all)
        if hasTokens, names.contains(AuthService.name) {
            throw UsageError("--token-issuer cannot be combined with accounts: remove auth from --services")
        }
        rulesFile = arguments.string("--rules")
        rules = try Self.rules(at: rulesFile)
        if rulesFile != nil { try Self.checkUse(ofRulesBy: names) }
        guard names.contains(AuthService.name) else {
            if let option = (["--mail-command", "--mail-from", "--oidc"] + MailRelayOptions.names).first(
                where: arguments.has)
            {
                throw UsageError("\(option) requires --services with auth")
            }
            accounts = nil
            return
        }
        let providers = try arguments.string("--oidc").map(ProviderFile.providers) ?? []
        let mailer = try Self.mailer(arguments, report: report)
        let limits = isTormented ? AdversarialTestActors.authLimits : AuthLimits()
        if let engine {
            if arguments.string("--after-data-loss") == "continue" {
                throw UsageError(
                    "--after-data-loss continue cannot be combined with accounts: remove auth from --services")
            }
            accounts = try await Accounts(
                engine: engine, mailer: mailer, providers: providers, limits: limits, log: log)
        } else {
            accounts = try await Accounts(
                store: store, mailer: mailer, providers: providers, limits: limits, log: log)
        }
    }

    /// The parts that the nodes of a cluster share.
    var sharedParts: String {
        let parts = (hasExamples ? ["counters/NAME"] : []) + (names.isEmpty ? [] : ["rooms", "collections"])
        let all = parts + (accounts == nil ? [] : ["accounts"])
        return all.isEmpty ? "nothing" : all.joined(separator: ", ")
    }

    /// The access policy of the server.
    var access: AccessPolicy {
        var access = accounts?.accessPolicy ?? .open
        if !names.isEmpty { access.identifiesCallers = true }
        return access
    }

    /// Returns the rules of a file, which are validated before anything starts; the default ones without a file.
    static func rules(at path: String?) throws(RulesFileError) -> RulesFile {
        try path.map { path throws(RulesFileError) in try RulesFile(contentsOfFile: path) } ?? RulesFile()
    }

    private static func checkUse(ofRulesBy names: [String]) throws(UsageError) {
        guard names.contains(CollectionHost.name) || names.contains(RoomHost.name) else {
            throw UsageError("--rules requires --services with collections or rooms")
        }
    }

    /// The lines about the rules that `serve` prints at its start.
    var inForce: [String] {
        guard names.contains(CollectionHost.name) || names.contains(RoomHost.name) else { return [] }
        guard let rulesFile else {
            return ["rules: default, every client may read, create and join; set others with --rules FILE"]
        }
        return ["rules: \(LogLine.of(rulesFile)), collections: \(rules.collectionCount), rooms: \(rules.roomCount)"]
    }

    /// Reads and applies the rules of a file, or the default ones. Throws, and keeps the current ones, if the file is invalid.
    func replaceRules(from path: String?) throws -> RulesFile {
        try Self.checkUse(ofRulesBy: names)
        let rules = try Self.rules(at: path)
        collections?.replaceRules(rules)
        rooms?.replaceRules(rules)
        return rules
    }

    mutating func expose(on server: TrebuchetServer) async {
        if let accounts {
            await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        }
        if names.contains(RoomHost.name) {
            rooms = RoomHost.expose(
                on: server, rules: rules, limits: isTormented ? AdversarialTestActors.roomLimits : RoomLimits(),
                placement: .cluster)
        }
        if names.contains(CollectionHost.name) {
            collections = CollectionHost.expose(
                on: server, store: store, rules: rules,
                limits: isTormented ? AdversarialTestActors.collectionLimits : CollectionLimits(), placement: .cluster)
        }
    }

    /// Opens the admin socket; nil if there is no service to administer or no path for it. A failure is an error for an
    /// explicit path, but not for the default one.
    func openAdminSocket(_ arguments: ParsedArguments, on server: TrebuchetServer, data: String?) throws -> AdminSocket?
    {
        guard !names.isEmpty else {
            if arguments.has("--admin-socket") { throw UsageError("--admin-socket requires --services") }
            return nil
        }
        func open(_ path: String) throws(AdminSocketError) -> AdminSocket {
            try AdminSocket.open(on: server, at: path, collections: collections, rooms: rooms, accounts: accounts)
        }
        if let path = arguments.string("--admin-socket") { return try open(path) }
        guard let data else { return nil }
        do throws(AdminSocketError) {
            return try open(AdminSocket.path(forData: data))
        } catch {
            report(.warning, "continuing without a socket for 'trebuchet admin': \(error)")
            return nil
        }
    }

    static func names(_ list: String) throws(UsageError) -> [String] {
        if list == "none" { return [] }
        var names: [String] = []
        for name in list.split(separator: ",").map(String.init) where !names.contains(name) {
            guard known.contains(name) else {
                let hint = NearestMatch.find(name, in: known).map { "; did you mean '\($0)'?" } ?? ""
                throw UsageError("--services: unknown service '\(name)'\(hint)")
            }
            names.append(name)
        }
        return names
    }

    /// Checks that the mail program exists, before anything starts.
    static func checkMailCommand(_ arguments: ParsedArguments) throws(UsageError) {
        guard !arguments.has("--smtp"), let command = arguments.string("--mail-command"),
            let program = command.split(separator: " ").first.map(String.init), !isProgram(program)
        else { return }
        let searched = program.contains("/") ? "" : " in PATH"
        throw UsageError("--mail-command \(program): program not found\(searched)")
    }

    /// Returns whether a program exists, at a path or on the `PATH`.
    private static func isProgram(_ name: String) -> Bool {
        func isThere(_ path: String) -> Bool {
            var about = stat()
            return stat(path, &about) == 0 && about.st_mode & S_IFMT == S_IFREG && Glibc.access(path, X_OK) == 0
        }
        guard !name.contains("/") else { return isThere(name) }
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        return path.split(separator: ":").contains { isThere("\($0)/\(name)") }
    }

    private static func mailer(
        _ arguments: ParsedArguments, report: @escaping @Sendable (ServerEvent.Level, String) -> Void
    ) throws(UsageError) -> any MagicCodeMailer {
        let sender = arguments.effective("--mail-from") ?? ""
        switch (arguments.string("--mail-command"), try MailRelayOptions.mailer(arguments, sender: sender)) {
        case (.some, .some): throw UsageError("--mail-command and --smtp cannot be combined")
        case (let command?, nil):
            let words = command.split(separator: " ").map(String.init)
            guard !words.isEmpty else { throw UsageError("--mail-command must not be empty") }
            return CommandMailer(words, sender: sender) { report(.notice, $0) }
        case (nil, let mailer?): return mailer
        case (nil, nil):
            Console.error(
                "trebuchet serve: sign-in codes are printed here; to mail them, use --mail-command or --smtp")
            return ClosureMailer { code, address in
                Console.error("trebuchet serve: code for \(address): \(code)")
            } notify: { notice, address in
                guard case .addressChanged(let other) = notice else { return }
                Console.error(
                    "trebuchet serve: notice to \(address): the address of the account was changed to \(other)")
            }
        }
    }
}
