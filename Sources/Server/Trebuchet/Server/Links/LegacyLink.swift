internal import Bytes
internal import Networking
internal import TrebuchetWire
internal import WebSockets

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Translates between a connection, which uses version 3, and a client of protocol version 1 or 2.
/// Only on the connection's reactor.
final class LegacyLink: MessageLink {
    /// Existing clients close the connection on a frame over 16 KiB.
    static let fragmentBytes = 8 << 10

    private let link: any MessageLink
    private var translator = LegacyTranslator(identity: UUID().uuidString)

    init(over link: any MessageLink) { self.link = link }

    /// Translates a message of the client and passes it to the connection.
    func receive(_ message: UnsafeRawBufferPointer, for connection: ServerConnection) {
        var translated = ByteBuffer(capacity: message.count)
        do throws(EnvelopeError) {
            try translator.incoming(message, into: &translated) { actor, mangled, count in
                connection.shard.directory.type(of: ActorName(actor))?.methodName(mangled: mangled, arguments: count)
            }
        } catch {
            return connection.refuse(error)
        }
        connection.receive(translated.bytes)
    }

    // MARK: Sizes

    /// Returns `messages.inboundBytes` increased for values in base64.
    static func largestMessage(within limits: ServerLimits) -> Int {
        let (sum, overflow) = limits.messages.inboundBytes.addingReportingOverflow(limits.messages.inboundBytes / 3 + 4)
        return overflow ? limits.messages.inboundBytes : sum
    }

    /// Returns the maximum size of a version 3 message whose base64 form the client accepts.
    ///
    /// - Parameter size: the maximum size that the client has announced.
    static func largestMessage(toClient size: Int, _ limits: ServerLimits) -> Int {
        let size = min(size, limits.messages.outboundBytes)
        // Reserves space for names of streams and actors, which versions 1 and 2 encode differently.
        return max(0, size - 256) / 4 * 3
    }

    // MARK: MessageLink

    func send(_ body: (inout ByteBuffer) -> Void) {
        var message = ByteBuffer()
        body(&message)
        for translated in translator.outgoing(message.bytes) { link.send { $0.append(translated) } }
    }

    /// Sends a `streamData` message. The value in base64 is made once for all clients.
    func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {
        let form = shared.derived(LegacyTranslator.sharedForm) { suffix in
            var form = ByteBuffer()
            LegacyTranslator.appendSuffix(ofStreamData: suffix, into: &form)
            return SharedBytes(form.bytes)
        }
        if form.count > 0 {
            var start = ByteBuffer()
            head(&start)
            let translated = translator.streamDataHead(start.bytes)
            return link.send(shared: form, headCount: translated.count) { $0.append(translated) }
        }
        // The value has no such form: the translator sends the client the reason, in the stream.
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
    func sendDrainPing() { link.sendDrainPing() }
    func close(_ code: WebSocketCloseCode, reason: String) { link.close(code, reason: reason) }
    func pauseReading() { link.pauseReading() }
    func resumeReading() { link.resumeReading() }
    func abort() { link.abort() }
}
