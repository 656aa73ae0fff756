import Commands
import TrebuchetServices

/// The options of `serve` for an SMTP relay.
enum MailRelayOptions {
    static let specs: [OptionSpec] = [
        OptionSpec(
            "--smtp", "HOST[:PORT]",
            "auth: SMTP relay for mails with codes; its port is 25, or 587 with 'starttls', or 465 with 'tls'",
            check: { relay throws(UsageError) in _ = try address(relay) }),
        OptionSpec(
            "--smtp-encryption", "KIND", "auth: encryption of --smtp: 'none', 'starttls' or 'tls'",
            default: "none; starttls with --smtp-user",
            form: .choice(SMTPMailer.Encryption.allCases.map(\.rawValue)), requires: "--smtp"),
        OptionSpec(
            "--smtp-user", "NAME",
            "auth: user name for --smtp; the password is in --smtp-password-file or TREBUCHET_SMTP_PASSWORD",
            requires: "--smtp"),
        OptionSpec(
            "--smtp-password-file", "FILE", "auth: file whose first line is the password of --smtp-user",
            requires: "--smtp-user", secretVariable: "TREBUCHET_SMTP_PASSWORD"),
        OptionSpec(
            "--smtp-ca-file", "FILE", "auth: root certificates in PEM to trust for --smtp",
            default: "those of the system", requires: "--smtp"),
    ]
    static let names = specs.map(\.name)

    /// Returns a mailer for the relay; nil without `--smtp`.
    static func mailer(_ arguments: ParsedArguments, sender: String) throws(UsageError) -> SMTPMailer? {
        guard let relay = arguments.string("--smtp") else { return nil }
        let (host, port) = try address(relay)
        let login = try login(arguments)
        let encryption =
            arguments.string("--smtp-encryption").flatMap { SMTPMailer.Encryption(rawValue: $0) }
            ?? (login == nil ? SMTPMailer.Encryption.none : .startTLS)
        if login != nil, encryption == .none, !["localhost", "127.0.0.1", "::1"].contains(host.lowercased()) {
            throw UsageError(
                "--smtp-user with --smtp-encryption none sends the password unencrypted to \(host): use starttls or tls"
            )
        }
        let roots = arguments.string("--smtp-ca-file")
        if let roots {
            guard encryption != .none else {
                throw UsageError("--smtp-ca-file requires --smtp-encryption starttls or tls")
            }
            _ = try ConfigurationFile.read(roots, of: "--smtp-ca-file", maximum: 16 << 20)
        }
        return SMTPMailer(
            host: host, port: port, encryption: encryption, login: login, caFile: roots, sender: sender)
    }

    private static func login(_ arguments: ParsedArguments) throws(UsageError) -> SMTPMailer.Login? {
        guard let user = arguments.string("--smtp-user") else { return nil }
        let password = try ConfigurationFile.secret("--smtp-password-file", or: "TREBUCHET_SMTP_PASSWORD", arguments)
        guard let password else {
            throw UsageError("--smtp-user requires --smtp-password-file, or the password in TREBUCHET_SMTP_PASSWORD")
        }
        return SMTPMailer.Login(user: user, password: password)
    }

    /// Parses `HOST`, `HOST:PORT`, `[IPv6]` or `[IPv6]:PORT`.
    private static func address(_ text: String) throws(UsageError) -> (host: String, port: Int?) {
        let problem = UsageError("--smtp \(text): not HOST or HOST:PORT, such as 127.0.0.1:25")
        guard !text.contains("/"), !text.contains("@"), !text.contains(" ") else { throw problem }
        let colon = text.hasSuffix("]") ? nil : text.lastIndex(of: ":")
        guard let colon else {
            guard !text.isEmpty else { throw problem }
            return (HostName.withoutBrackets(text), nil)
        }
        guard let port = Int(text[text.index(after: colon)...]), (1...65535).contains(port), colon > text.startIndex
        else { throw problem }
        return (HostName.withoutBrackets(text[..<colon]), port)
    }
}
