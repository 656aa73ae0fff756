internal import Bytes
internal import Networking
internal import TrebuchetWire
internal import WebSockets

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Stands between a connection and the link of a client that speaks version 1 or 2. The connection speaks version 3 with it, and knows nothing
/// else but that dates are to be written in whole seconds.
///
/// `@unchecked Sendable`: everything runs on the connection's reactor.
final class LegacyLink: MessageLink, @unchecked Sendable {
    /// Existing clients close on a frame over 16 KiB.
    static let fragmentBytes = 8 << 10

    private let link: any MessageLink
    private var translator = LegacyTranslator(identity: UUID().uuidString)

    init(over link: any MessageLink) { self.link = link }

    /// Hands a message of the client to its connection.
    func receive(_ message: UnsafeRawBufferPointer, for connection: ServerConnection) {
        var translated = ByteBuffer(capacity: message.count)
        do throws(EnvelopeError) {
            try translator.incoming(message, into: &translated)
        } catch {
            return connection.refuse(error)
        }
        connection.receive(translated.bytes)
    }

    // MARK: Sizes

    /// `messageSize` where values are in base64.
    static func largestMessage(within limits: ServerLimits) -> Int {
        let (sum, overflow) = limits.messageSize.addingReportingOverflow(limits.messageSize / 3 + 4)
        return overflow ? limits.messageSize : sum
    }

    /// What a message may have in version 3, so that the client takes it in base64.
    ///
    /// - Parameter size: what the client takes, as far as it has said so.
    static func largestMessage(toClient size: Int, _ limits: ServerLimits) -> Int {
        let size = min(size, limits.clientMessageSize)
        // Beside the value there are names of streams and actors, which have another form there.
        return max(0, size - 256) / 4 * 3
    }

    // MARK: MessageLink

    func send(_ body: (inout ByteBuffer) -> Void) {
        var message = ByteBuffer()
        body(&message)
        for translated in translator.outgoing(message.bytes) { link.send { $0.append(translated) } }
    }

    func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {
        send { buffer in
            buffer.reserve(headCount + shared.count)
            head(&buffer)
            buffer.append(shared.bytes)
        }
    }

    var isWritable: Bool { link.isWritable }
    func inOneWrite(_ body: () -> Void) { link.inOneWrite(body) }
    var memory: MemoryAccount? { link.memory }
    var pendingBytes: Int { link.pendingBytes }
    var host: AddressKey? { link.host }
    func askWhetherHeard() { link.askWhetherHeard() }
    func close(_ code: WebSocketCloseCode, reason: String) { link.close(code, reason: reason) }
    func pauseReading() { link.pauseReading() }
    func resumeReading() { link.resumeReading() }
    func abort() { link.abort() }
}
