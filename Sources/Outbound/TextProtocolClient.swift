internal import Bytes
internal import Networking
internal import Transports

/// The client side of a line-based protocol such as SMTP. It does no I/O: it receives lines and returns actions.
package protocol TextProtocolDialogue: Sendable {
    /// Handles one line from the server, without its newline.
    mutating func receive(_ line: String) -> TextProtocolAction
}

/// The next action of a dialogue.
package enum TextProtocolAction: Equatable, Sendable {
    /// Waits for more lines.
    case wait
    case send(String)
    /// Sends the text and ends the dialogue successfully.
    case finish(String)
    case fail(String)
}

/// Runs a dialogue over a new connection.
package enum TextProtocolClient {
    /// Connects and runs a dialogue.
    ///
    /// - Parameters:
    ///   - timeout: the time limit for connecting, and again for the whole dialogue.
    ///   - failure: creates the error from the peer's behaviour, such as " ended the connection" or ": its reply is too long".
    ///     Connection errors are thrown unchanged.
    package static func run(
        _ dialogue: some TextProtocolDialogue, host: String, port: Int, timeout: Duration,
        failure: @escaping @Sendable (_ reason: String) -> any Error
    ) async throws {
        let reactor = ReactorGroup.client
        let channel = try await Connector.connect(host: host, port: port, on: reactor, timeout: timeout)
        try await withCheckedThrowingContinuation { continuation in
            reactor.execute { TextProtocolConnection(dialogue, continuation, failure).start(channel, timeout: timeout) }
        }
    }
}

/// One dialogue in progress. Only on its reactor.
private final class TextProtocolConnection<Dialogue: TextProtocolDialogue>: ByteChannelDelegate {
    private static var maximumLineLength: Int { 4096 }

    private let failure: (String) -> any Error
    private var dialogue: Dialogue
    private var continuation: CheckedContinuation<Void, any Error>?
    private var line: [UInt8] = []
    private var timer: LoopTimer?

    init(
        _ dialogue: Dialogue, _ continuation: CheckedContinuation<Void, any Error>,
        _ failure: @escaping (String) -> any Error
    ) {
        self.dialogue = dialogue
        self.failure = failure
        self.continuation = continuation
    }

    func start(_ channel: ByteChannel, timeout: Duration) {
        do {
            try channel.start(self)
            timer = channel.reactor.schedule(after: timeout, for: self) { [weak channel] connection in
                connection.finish(connection.failure(" took longer than \(timeout)"))
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
                guard line.count <= Self.maximumLineLength else { return close(channel, "its reply is too long") }
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
            case .fail(let reason): return close(channel, reason)
            }
        }
    }

    func channelDidBecomeWritable(_ channel: ByteChannel) {}

    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {
        finish(failure(" ended the connection\(error.map { ": \($0)" } ?? "")"))
        timer?.cancel()
    }

    private func send(_ text: String, _ channel: ByteChannel) {
        channel.write { (buffer: inout ByteBuffer) in buffer.append(utf8: text) }
    }

    private func close(_ channel: ByteChannel, _ reason: String) {
        finish(failure(": \(reason)"))
        channel.close()
    }

    /// Reports the first outcome and ignores later ones.
    private func finish(_ error: (any Error)?) {
        guard let continuation else { return }
        self.continuation = nil
        timer?.cancel()
        if let error { continuation.resume(throwing: error) } else { continuation.resume() }
    }
}
