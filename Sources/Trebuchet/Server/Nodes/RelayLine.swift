internal import Bytes
internal import Synchronization
internal import TrebuchetCluster

/// A line to another node.
struct RelayLine: Sendable {
    let exchange: NodeExchange
    let node: ClusterNode
    let number: UInt64
    /// Whether this node has opened it.
    let isOwn: Bool

    func send(_ kind: RelayFrame.Kind, _ payload: [UInt8] = []) {
        exchange.send([RelayFrame(kind, line: number, payload)], to: node)
    }

    /// A message of any length.
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

    /// The same, without a copy of one that goes in one part.
    func send(_ message: [UInt8], part: RelayFrame.Kind, last: RelayFrame.Kind) {
        guard message.count > NodeExchange.partBytes else { return send(last, message) }
        message.withUnsafeBytes { send($0, part: part, last: last) }
    }

    func send(_ kind: RelayFrame.Kind, number: UInt64) {
        var payload: [UInt8] = []
        ByteParts.append(number, to: &payload)
        send(kind, payload)
    }

    /// Nothing comes for it any more.
    func forget() { exchange.forget(self) }
}

/// A message that is on its way to another node and still in this one's memory: whoever sends it has this until it has gone, and nobody
/// else keeps it.
final class Departure: Sendable {
    private let didGo = Mutex<(@Sendable () -> Void)?>(nil)

    deinit { didGo.withLock { $0 }?() }

    /// Calls `body` when it has gone.
    func onEnd(_ body: @escaping @Sendable () -> Void) { didGo.withLock { $0 = body } }
}
