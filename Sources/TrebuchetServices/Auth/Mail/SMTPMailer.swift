internal import Outbound

/// Hands codes to a mail relay by SMTP, without TLS and without a password: for one on the same machine or network.
public struct SMTPMailer: MagicCodeMailer {
    private let host: String
    private let port: Int
    private let sender: String
    private let timeout: Duration

    /// - Parameters:
    ///   - sender: the address that mails come from. Default `trebuchet@localhost`.
    ///   - timeout: how long connecting, and then the whole dialogue, may take. Default 30 seconds.
    public init(
        host: String, port: Int = 25, sender: String = "trebuchet@localhost", timeout: Duration = .seconds(30)
    ) {
        self.host = host
        self.port = port
        self.sender = sender
        self.timeout = timeout
    }

    /// Connects to the relay and hands the mail over; returns when the relay has taken it. Throws ``MailError`` when it does
    /// not, or when the timeout is over. Each mail has a connection of its own.
    public func send(_ code: String, to address: String) async throws {
        try await send(try MailMessage(code: code, from: sender, to: address))
    }

    /// Hands the notice over as it does a code.
    public func send(_ notice: AccountNotice, to address: String) async throws {
        try await send(try MailMessage(notice, from: sender, to: address))
    }

    private func send(_ mail: MailMessage) async throws {
        let relay = "\(host):\(port)"
        try await LineExchange.run(SMTPDialogue(mail), host: host, port: port, timeout: timeout) {
            MailError("the mail relay \(relay)\($0)")
        }
    }
}
