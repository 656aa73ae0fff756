internal import Bytes
internal import Networking
internal import Platform
internal import Transports

/// The owner of a connection; called on its reactor.
protocol RedisConnectionOwner: AnyObject {
    /// Receives a push message that is not a reply.
    func connection(_ connection: RedisConnection, didPush elements: [RESPValue])
    /// The connection has closed, and all commands in flight have completed.
    func connectionDidClose(_ connection: RedisConnection, reason: String)
}

/// One connection to a server. Replies arrive in the order of the commands; push messages between them are passed to
/// the owner. Only on its reactor.
final class RedisConnection: ByteChannelDelegate {
    /// A command that waits for its reply.
    private struct Pending {
        /// Nil after the deadline; the reply is still to come.
        var done: RedisCompletion?
        let sent: UInt64
        let deadline: UInt64
        let bytes: Int
        let expected: Expected
        /// For `left`: true after an error.
        var hasError = false
    }

    /// The expected reply to a command.
    enum Expected {
        /// Any value except a push.
        case answer
        /// For SSUBSCRIBE: a push that names the channel, or an error.
        case joined([UInt8])
        /// For SUNSUBSCRIBE followed by PING. The push for an unsubscribed channel equals the one for a migrated part
        /// of the cluster, in which case the reply is an error, or the same push again. So all of them count as its
        /// reply, up to the reply to PING.
        case left([UInt8])
    }

    let endpoint: RedisURL.Endpoint
    let channel: ByteChannel
    private let patience: UInt64
    private weak var owner: (any RedisConnectionOwner)?
    private var parser = RESPParser()
    /// The commands in the order of their replies. Those before `head` are complete.
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

    /// Writes a command. All writes of a turn are sent in one `send`.
    func send(
        _ command: RedisCommand, now: UInt64, deadline: UInt64, expecting expected: Expected = .answer,
        _ done: @escaping RedisCompletion
    ) {
        let bytes = command.bytes.count
        pending.append(Pending(done: done, sent: now, deadline: deadline, bytes: bytes, expected: expected))
        pendingBytes += bytes
        channel.write { (buffer: inout ByteBuffer) in buffer.append(command.bytes) }
    }

    /// Fails the commands whose deadline has passed, and returns the next deadline.
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
        // A silent connection may have been cut without notice.
        if head < pending.count {
            let end = pending[head].sent &+ patience
            if end <= now {
                channel.reset(TransportError(.timedOut, "\(endpoint) no longer responds"))
            } else {
                next = min(next ?? .max, end)
            }
        }
        for done in late {
            done(.failure(.unknownOutcome("\(endpoint) did not respond in time; the command may have been executed")))
        }
        return next
    }

    func close() { channel.close() }

    // MARK: Reading

    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        var rest = UnsafeRawBufferPointer(bytes)
        do throws(RESPViolation) {
            while channel.isOpen, let value = try parser.next(&rest) { receiveValue(value) }
        } catch {
            fail("invalid RESP3: \(error)")
        }
    }

    private func receiveValue(_ value: RESPValue) {
        if case .push(let elements) = value {
            switch head < pending.count ? pending[head].expected : .answer {
            case .joined(let channel) where elements.isReply("ssubscribe", of: channel): break
            case .left(let channel) where elements.isReply("sunsubscribe", of: channel): return
            default: owner?.connection(self, didPush: elements); return
            }
        } else if head == pending.count {
            return fail("reply without a command")
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

    private func fail(_ reason: String) {
        violation = reason
        channel.reset(TransportError(.handshake, "\(endpoint): \(reason)"))
    }

    func channelDidBecomeWritable(_ channel: ByteChannel) {}

    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {
        let reason = error.map { "the connection to \(endpoint) broke: \($0)" } ?? "\(endpoint) closed the connection"
        let lost = pending[head...]
        pending = []
        (head, pendingBytes) = (0, 0)
        for pending in lost {
            pending.done?(.failure(.unknownOutcome(reason + "; the command may have been executed")))
        }
        owner?.connectionDidClose(self, reason: reason)
    }
}

extension [RESPValue] {
    fileprivate func isReply(_ kind: StaticString, of channel: [UInt8]) -> Bool {
        count >= 2 && self[0].isText(kind) && self[1].bytes == channel
    }
}
