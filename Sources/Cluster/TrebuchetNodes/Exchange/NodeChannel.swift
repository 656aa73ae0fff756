internal import Bytes
internal import Synchronization
internal import TrebuchetCluster

/// A node channel: an ordered message path to another node.
struct NodeChannel: Sendable {
    let exchange: NodeTransport
    let node: ClusterNode
    let number: UInt64
    /// True if this node has opened the channel.
    let isOwn: Bool

    func send(_ kind: NodeFrame.Kind, _ payload: [UInt8] = []) {
        exchange.send([NodeFrame(kind, channelID: number, payload)], to: node)
    }

    /// Sends a message of any length, in parts if necessary.
    func send(
        _ message: UnsafeRawBufferPointer, part: NodeFrame.Kind, last: NodeFrame.Kind,
        _ completion: SendCompletion? = nil
    ) {
        var frames: [NodeFrame] = []
        var rest = message
        while rest.count > NodeTransport.partBytes {
            frames.append(NodeFrame(part, channelID: number, Array(rest.prefix(NodeTransport.partBytes))))
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(NodeTransport.partBytes))
        }
        frames.append(NodeFrame(last, channelID: number, Array(rest)))
        exchange.send(frames, to: node, completion)
    }

    /// Sends a message of any length, without a copy if it fits into one part.
    func send(_ message: [UInt8], part: NodeFrame.Kind, last: NodeFrame.Kind) {
        guard message.count > NodeTransport.partBytes else { return send(last, message) }
        message.withUnsafeBytes { send($0, part: part, last: last) }
    }

    func send(_ kind: NodeFrame.Kind, number: UInt64) {
        var payload: [UInt8] = []
        BinaryFields.append(number, to: &payload)
        send(kind, payload)
    }

    /// Removes the channel; no further frames are delivered to its end.
    func discard() { exchange.removeChannel(self) }
}

/// A token that exists while a message to another node is in this node's memory; only the send queue retains it.
final class SendCompletion: Sendable {
    private let completion = Mutex<(@Sendable () -> Void)?>(nil)

    deinit { completion.withLock { $0 }?() }

    /// Calls `body` when the message has been sent or dropped.
    func onEnd(_ body: @escaping @Sendable () -> Void) { completion.withLock { $0 = body } }
}
