internal import Bytes
internal import Networking
internal import Platform
internal import Transports

/// Who has a connection; called on its reactor.
protocol RedisConnectionOwner: AnyObject {
    /// What the server said that answers no command.
    func connection(_ connection: RedisConnection, didPush elements: [RESPValue])
    /// It is gone, and all that was in flight has been told.
    func connectionDidClose(_ connection: RedisConnection, reason: String)
}

/// One connection to a server: commands go out, answers come in their order, and what answers none is handed on between them.
///
/// `@unchecked Sendable`: it is touched on its reactor alone.
final class RedisConnection: ByteChannelDelegate, @unchecked Sendable {
    private struct Pending {
        /// Nil once its time has passed; the answer is still to come.
        var done: RedisCompletion?
        let sent: UInt64
        let deadline: UInt64
        let bytes: Int
        let expected: Expected
        /// Of `left`: whether an error has come.
        var hasError = false
    }

    /// How a server answers a command.
    enum Expected {
        /// With what is no push.
        case answer
        /// SSUBSCRIBE: with a push that names the channel, or with an error.
        case joined([UInt8])
        /// SUNSUBSCRIBE and PING behind it. The push that says that a channel was left looks as the one that says that the part
        /// of a cluster has moved in which it lies; then the answer is an error, or the same push again. So all of them are its
        /// answer, up to that to PING.
        case left([UInt8])
    }

    let endpoint: RedisURL.Endpoint
    private let channel: ByteChannel
    private let patience: UInt64
    private weak var owner: (any RedisConnectionOwner)?
    private var parser = RESPParser()
    /// In the order of their answers; those before `head` have theirs.
    private var pending: [Pending] = []
    private var head = 0
    private(set) var pendingBytes = 0
    private var violation: String?

    init(
        _ channel: ByteChannel, to endpoint: RedisURL.Endpoint, patience: Duration, owner: any RedisConnectionOwner
    ) {
        self.channel = channel
        self.endpoint = endpoint
        self.patience = patience.nanoseconds
        self.owner = owner
    }

    var pendingCount: Int { pending.count - head }

    func start() throws(TransportError) { try channel.start(self) }

    /// Writes a command; with what else this turn writes it leaves in one `send`.
    func send(
        _ command: RedisCommand, now: UInt64, deadline: UInt64, expecting expected: Expected = .answer,
        _ done: @escaping RedisCompletion
    ) {
        let bytes = command.bytes.count
        pending.append(Pending(done: done, sent: now, deadline: deadline, bytes: bytes, expected: expected))
        pendingBytes += bytes
        channel.write { (buffer: inout ByteBuffer) in buffer.append(command.bytes) }
    }

    /// Tells those whose time has passed; gives the next moment at which somebody's does.
    func expire(now: UInt64) -> UInt64? {
        var next: UInt64?
        var late: [RedisCompletion] = []
        for index in pending.indices[head...] where pending[index].done != nil {
            if pending[index].deadline <= now {
                late.append(pending[index].done.take()!)
            } else {
                next = min(next ?? .max, pending[index].deadline)
            }
        }
        // A connection over which nothing comes any more may be cut without a word.
        if head < pending.count {
            let end = pending[head].sent &+ patience
            if end <= now {
                channel.reset(TransportError(.timedOut, "\(endpoint) answers nothing any more"))
            } else {
                next = min(next ?? .max, end)
            }
        }
        for done in late {
            done(.failure(.unknownOutcome("\(endpoint) did not answer in time; what was asked may have been done")))
        }
        return next
    }

    func close() { channel.close() }

    // MARK: Reading

    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        var rest = UnsafeRawBufferPointer(bytes)
        do throws(RESPViolation) {
            while channel.isOpen, let value = try parser.next(&rest) { take(value) }
        } catch {
            giveUp("it does not speak RESP3: \(error)")
        }
    }

    private func take(_ value: RESPValue) {
        if case .push(let elements) = value {
            switch head < pending.count ? pending[head].expected : .answer {
            case .joined(let channel) where elements.says("ssubscribe", of: channel): break
            case .left(let channel) where elements.says("sunsubscribe", of: channel): return
            default: owner?.connection(self, didPush: elements); return
            }
        } else if head == pending.count {
            return giveUp("it answers what nobody asked")
        } else if case .left = pending[head].expected, case .error = value, !pending[head].hasError {
            pending[head].hasError = true
            return
        }
        let answered = pending[head]
        pending[head].done = nil
        head += 1
        pendingBytes -= answered.bytes
        if head == pending.count {
            pending.removeAll(keepingCapacity: pending.capacity <= 1_024)
            head = 0
        } else if head >= 256, head * 2 > pending.count {
            pending.removeFirst(head)
            head = 0
        }
        guard let done = answered.done else { return }
        if case .error(let reply) = value { done(.failure(.reply(reply))) } else { done(.success(value)) }
    }

    private func giveUp(_ reason: String) {
        violation = reason
        channel.reset(TransportError(.handshake, "\(endpoint): \(reason)"))
    }

    func channelDidBecomeWritable(_ channel: ByteChannel) {}

    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {
        let reason = error.map { "the connection to \(endpoint) broke: \($0)" } ?? "\(endpoint) ended the connection"
        let lost = pending[head...]
        pending = []
        (head, pendingBytes) = (0, 0)
        for pending in lost {
            pending.done?(.failure(.unknownOutcome(reason + "; what was asked may have been done")))
        }
        owner?.connectionDidClose(self, reason: reason)
    }
}

extension [RESPValue] {
    fileprivate func says(_ kind: StaticString, of channel: [UInt8]) -> Bool {
        count >= 2 && self[0].isText(kind) && self[1].bytes == channel
    }
}
