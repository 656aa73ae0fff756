internal import Outbound

/// Sends codes to a mail relay by SMTP, without TLS and password: for a relay on the same machine or network.
public struct SMTPMailer: MagicCodeMailer {
    private let host: String
    private let port: Int
    private let sender: String
    private let timeout: Duration

    /// - Parameters:
    ///   - sender: the sender address of mails. Default `trebuchet@localhost`.
    ///   - timeout: the maximum time for connecting, and then for the whole dialogue. Default 30 seconds.
    public init(
        host: String, port: Int = 25, sender: String = "trebuchet@localhost", timeout: Duration = .seconds(30)
    ) {
        self.host = host
        self.port = port
        self.sender = sender
        self.timeout = timeout
    }

    /// Connects to the relay and sends the mail; returns when the relay has accepted it. Throws ``MailError`` when it refuses,
    /// or after the timeout. Each mail has a separate connection.
    public func send(_ code: String, to address: String) async throws {
        try await send(try MailMessage(code: code, from: sender, to: address))
    }

    /// Sends the notice in the same way as a code.
    public func send(_ notice: AccountNotice, to address: String) async throws {
        try await send(try MailMessage(notice, from: sender, to: address))
    }

    private func send(_ mail: MailMessage) async throws {
        let relay = "\(host):\(port)"
        try await TextProtocolClient.run(SMTPStateMachine(mail), host: host, port: port, timeout: timeout) {
            MailError("the mail relay \(relay)\($0)")
        }
    }
}
