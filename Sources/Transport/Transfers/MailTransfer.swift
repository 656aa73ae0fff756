internal import CCurl
internal import Platform
package import Transports

/// Sends a mail by SMTP (RFC 5321) with libcurl, each over a separate connection. At most 64 mails are in progress; more wait.
package struct MailTransfer: Sendable {
    /// How the connection to the relay is encrypted.
    package enum Encryption: Sendable { case none, startTLS, tls }

    package let host: String
    package let port: Int
    package let encryption: Encryption
    /// The name and the password for the relay. Nil: no authentication.
    package let login: (user: String, password: String)?
    /// A file of trusted roots in PEM. Nil: those of the system, or of `SSL_CERT_FILE`.
    package let rootsFile: String?
    package let timeout: Duration
    private static let threads = BlockingThreads(64)

    package init(
        host: String, port: Int, encryption: Encryption, login: (user: String, password: String)?, rootsFile: String?,
        timeout: Duration
    ) {
        (self.host, self.port, self.encryption) = (host, port, encryption)
        (self.login, self.rootsFile, self.timeout) = (login, rootsFile, timeout)
    }

    /// Sends a mail; returns when the relay has accepted it.
    ///
    /// - Parameters:
    ///   - text: the mail with CR LF line ends, without dot-stuffing, which libcurl adds (§4.5.2).
    ///   - sender: an address without special characters, as is `recipient`.
    package func send(_ text: String, from sender: String, to recipient: String) async throws(TransportError) {
        do throws(TransportError) {
            _ = try await Transfer.perform(on: Self.threads) { () throws(TransportError) in
                try transfer(text, from: sender, to: recipient)
            }
        } catch {
            throw TransportError(error.code, "the mail relay \(peer): \(error.message)")
        }
    }

    private var peer: String { (host.contains(":") ? "[\(host)]" : host) + ":\(port)" }

    private func transfer(_ text: String, from sender: String, to recipient: String) throws(TransportError) -> Transfer
    {
        // The path is the name in EHLO.
        let transfer = try Transfer(
            (encryption == .tls ? "smtps://" : "smtp://") + peer + "/localhost",
            protocols: "smtp,smtps", timeout: timeout, maximumSize: 64 << 10)
        // For each reply. After a refusal libcurl waits for the reply to QUIT, beyond the time limit of the transfer.
        try transfer.set(CURLOPT_SERVER_RESPONSE_TIMEOUT, max(1, Int(timeout / .seconds(1))))
        if encryption == .startTLS { try transfer.set(CURLOPT_USE_SSL, Int(CURLUSESSL_ALL.rawValue)) }
        if let login {
            try transfer.set(CURLOPT_USERNAME, login.user)
            try transfer.set(CURLOPT_PASSWORD, login.password)
        }
        if let rootsFile { try transfer.set(CURLOPT_CAINFO, rootsFile) }
        try transfer.set(CURLOPT_MAIL_FROM, "<\(sender)>")
        try transfer.set(CURLOPT_MAIL_RCPT, ["<\(recipient)>"])
        try transfer.setMail(text)
        return transfer
    }
}
