internal import Bytes
internal import Synchronization
internal import TrebuchetCluster

/// A node channel: an ordered message path to another node.
struct RelayLine: Sendable {
    let exchange: NodeExchange
    let node: ClusterNode
    let number: UInt64
    /// Whether this node has opened it.
    let isOwn: Bool

    func send(_ kind: RelayFrame.Kind, _ payload: [UInt8] = []) {
        exchange.send([RelayFrame(kind, line: number, payload)], to: node)
    }

    /// Sends a message of any length, in parts if necessary.
    func send(
        _ message: UnsafeRawBufferPointer, part: RelayFrame.Kind, last: RelayFrame.Kind, _ departure: Departure? = nil
    ) {
        var frames: [RelayFrame] = []
        var rest = message
        while rest.count > NodeExchange.partBytes {
            frames.append(RelayFrame(part, line: number, Array(rest.prefix(NodeExchange.partBytes))))
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(NodeExchange.partBytes))
        }
        frames.append(RelayFrame(last, line: number, Array(rest)))
        exchange.send(frames, to: node, departure)
    }

    /// Sends a message of any length, without a copy if it fits into one part.
    func send(_ message: [UInt8], part: RelayFrame.Kind, last: RelayFrame.Kind) {
        guard message.count > NodeExchange.partBytes else { return send(last, message) }
        message.withUnsafeBytes { send($0, part: part, last: last) }
    }

    func send(_ kind: RelayFrame.Kind, number: UInt64) {
        var payload: [UInt8] = []
        ByteParts.append(number, to: &payload)
        send(kind, payload)
    }

    /// Removes the channel; no further frames are delivered to its end.
    func forget() { exchange.forget(self) }
}

/// A token that exists while a message to another node is in this node's memory; only the send queue retains it.
final class Departure: Sendable {
    private let didGo = Mutex<(@Sendable () -> Void)?>(nil)

    deinit { didGo.withLock { $0 }?() }

    /// Calls `body` when the message has been sent or dropped.
    func onEnd(_ body: @escaping @Sendable () -> Void) { didGo.withLock { $0 = body } }
}
