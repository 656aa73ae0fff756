internal import Transfers
internal import Transports

/// Sends codes to a mail relay by SMTP, with libcurl.
///
///     SMTPMailer(
///         host: "smtp.example.org", encryption: .startTLS, login: .init(user: "app", password: password),
///         sender: "noreply@app.example")
///
/// Each mail has a separate connection; at most 64 mails are sent at once, and more wait. Proxies of the environment are not used.
public struct SMTPMailer: MagicCodeMailer {
    /// How the connection to the relay is encrypted.
    public enum Encryption: String, Sendable, CaseIterable {
        /// Not encrypted, port 25: for a relay on the same machine or network.
        case none
        /// Encrypted by STARTTLS (RFC 3207), port 587. A relay that does not offer it is an error.
        case startTLS = "starttls"
        /// Encrypted from the beginning (RFC 8314), port 465.
        case tls

        var defaultPort: Int {
            switch self {
            case .none: 25
            case .startTLS: 587
            case .tls: 465
            }
        }
    }

    /// The name and the password for the relay.
    public struct Login: Sendable {
        let user: String
        let password: String

        /// Creates a login; neither may contain a zero byte.
        public init(user: String, password: String) { (self.user, self.password) = (user, password) }
    }

    private let transfer: MailTransfer
    private let sender: String

    /// - Parameters:
    ///   - host: the name or the address of the relay. With encryption its certificate must be valid for it.
    ///   - port: the port of the relay. Default: 25, 587 with STARTTLS, 465 with TLS.
    ///   - encryption: the encryption of the connection. Default none.
    ///   - login: the authentication (RFC 4954), in the best way that the relay offers. Default none. It must not be used without
    ///     encryption, except for a relay on the same machine.
    ///   - caFile: a file of trusted root certificates in PEM. Default: those of the system, or of the file that `SSL_CERT_FILE`
    ///     names.
    ///   - sender: the sender address of mails. Default `trebuchet@localhost`.
    ///   - timeout: the maximum time for a mail; twice as long if a relay that has refused it does not reply to QUIT. Default
    ///     30 seconds.
    public init(
        host: String, port: Int? = nil, encryption: Encryption = .none, login: Login? = nil, caFile: String? = nil,
        sender: String = "trebuchet@localhost", timeout: Duration = .seconds(30)
    ) {
        let used: MailTransfer.Encryption =
            switch encryption {
            case .none: .none
            case .startTLS: .startTLS
            case .tls: .tls
            }
        transfer = MailTransfer(
            host: host, port: port ?? encryption.defaultPort, encryption: used,
            login: login.map { ($0.user, $0.password) }, rootsFile: caFile, timeout: timeout)
        self.sender = sender
    }

    /// Sends the mail; returns when the relay has accepted it. Throws ``MailError`` when it refuses, cannot be reached or
    /// verified, or after the timeout.
    public func send(_ code: String, to address: String) async throws {
        try await send(try MailMessage(code: code, from: sender, to: address))
    }

    /// Sends the notice in the same way as a code.
    public func send(_ notice: AccountNotice, to address: String) async throws {
        try await send(try MailMessage(notice, from: sender, to: address))
    }

    private func send(_ mail: MailMessage) async throws {
        do throws(TransportError) {
            try await transfer.send(mail.text, from: mail.sender, to: mail.recipient)
        } catch {
            throw MailError(error.message)
        }
    }
}
