internal import Bytes
internal import Networking

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

    public func send(_ code: String, to address: String) async throws {
        try await send(try MailMessage(code: code, from: sender, to: address))
    }

    public func send(_ notice: AccountNotice, to address: String) async throws {
        try await send(try MailMessage(notice, from: sender, to: address))
    }

    private func send(_ mail: MailMessage) async throws {
        let reactor = ReactorGroup.client
        let channel = try await Connector.connect(host: host, port: port, on: reactor, timeout: timeout)
        let relay = "\(host):\(port)"
        let timeout = timeout
        try await withCheckedThrowingContinuation { continuation in
            reactor.execute {
                let connection = SMTPConnection(mail, relay: relay, continuation)
                connection.start(channel, timeout: timeout)
            }
        }
    }
}

/// One dialogue on its way: on its reactor.
private final class SMTPConnection: ByteChannelDelegate {
    private static let longestLine = 4096

    private let relay: String
    private var dialogue: SMTPDialogue
    private var continuation: CheckedContinuation<Void, any Error>?
    private var line: [UInt8] = []
    private var timer: Timer?

    init(_ mail: MailMessage, relay: String, _ continuation: CheckedContinuation<Void, any Error>) {
        dialogue = SMTPDialogue(mail)
        self.relay = relay
        self.continuation = continuation
    }

    func start(_ channel: ByteChannel, timeout: Duration) {
        do {
            try channel.start(self)
            timer = channel.reactor.schedule(after: timeout, for: self) { [weak channel] connection in
                connection.finish(MailError("the mail relay \(connection.relay) took longer than \(timeout)"))
                channel?.close()
            }
        } catch {
            finish(error)
        }
    }

    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        for byte in bytes {
            if byte != 0x0A {
                line.append(byte)
                guard line.count <= Self.longestLine else { return end(channel, "its reply is too long") }
                continue
            }
            if line.last == 0x0D { line.removeLast() }
            let text = String(decoding: line, as: UTF8.self)
            line = []
            switch dialogue.receive(text) {
            case .wait: break
            case .send(let text): send(text, channel)
            case .finish(let text):
                send(text, channel)
                finish(nil)
                return channel.closeAfterFlush()
            case .fail(let reason): return end(channel, reason)
            }
        }
    }

    func channelDidBecomeWritable(_ channel: ByteChannel) {}

    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {
        finish(MailError("the mail relay \(relay) ended the connection\(error.map { ": \($0)" } ?? "")"))
        timer?.cancel()
    }

    private func send(_ text: String, _ channel: ByteChannel) {
        channel.write { (buffer: inout ByteBuffer) in buffer.append(utf8: text) }
    }

    private func end(_ channel: ByteChannel, _ reason: String) {
        finish(MailError("the mail relay \(relay): \(reason)"))
        channel.close()
    }

    /// The first outcome counts.
    private func finish(_ error: (any Error)?) {
        guard let continuation else { return }
        self.continuation = nil
        timer?.cancel()
        if let error { continuation.resume(throwing: error) } else { continuation.resume() }
    }
}
