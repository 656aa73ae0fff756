internal import Bytes
internal import Networking
internal import Platform
internal import Transports

/// One direction of a connection through a link: receives bytes, and forwards them according to its fault course.
final class FaultyPipe {
    /// Received bytes, with the time at which they are due.
    private struct ScheduledChunk {
        var bytes: ArraySlice<UInt8>
        /// Nanoseconds of the monotonic clock.
        let due: UInt64
    }

    /// The number of waiting bytes above which reading pauses.
    private static let maximumQueuedCount = 256 << 10

    let direction: FaultSchedule.Direction
    /// The owner of this pipe, which outlives it.
    private unowned let connection: FaultyConnection
    private let core: FaultyLinkCore
    private var faultSequence: FaultSequence
    private var step: FaultSequence.Step
    private var arrivals: [ScheduledChunk] = []
    private var waitingBytes = 0
    /// While it is set, nothing is forwarded.
    private var timer: LoopTimer?
    private var hasSourceEnded = false
    private var isStopped = false

    init(_ direction: FaultSchedule.Direction, of connection: FaultyConnection, _ core: FaultyLinkCore) {
        self.direction = direction
        self.connection = connection
        self.core = core
        faultSequence = core.schedule.faultSequence(ofConnection: connection.number, direction)
        step = faultSequence.next()
    }

    func append(_ bytes: UnsafeRawBufferPointer) {
        guard !isStopped else { return }
        arrivals.append(
            ScheduledChunk(bytes: Array(bytes)[...], due: MonotonicClock.now &+ faultSequence.delay.nanoseconds))
        waitingBytes += bytes.count
        if waitingBytes > Self.maximumQueuedCount { connection.source(of: self)?.pauseReading() }
        pump()
    }

    /// Ends the input. Waiting bytes are still forwarded.
    func sourceDidEnd() {
        hasSourceEnded = true
        pump()
    }

    /// Ends the input. Waiting bytes are forwarded together after the duration, without further faults.
    func finish(after time: Duration) {
        hasSourceEnded = true
        step = .carry(.max)
        timer?.cancel()
        wait(time)
    }

    /// Stops the pipe. Waiting bytes are dropped.
    func stop() {
        isStopped = true
        timer?.cancel()
        timer = nil
        arrivals = []
        waitingBytes = 0
    }

    /// Forwards the bytes that are due.
    func pump() {
        while !isStopped, timer == nil, !core.isStalled, let target = connection.target(of: self), target.isWritable {
            if case .cut(let cut) = step { return connection.cut(cut) }
            guard let first = arrivals.first else {
                if hasSourceEnded {
                    stop()
                    target.closeAfterFlush()
                }
                return
            }
            switch step {
            case .cut: return
            case .stall(let time):
                core.count { $0.stalls += 1 }
                step = faultSequence.next()
                wait(time)
            case .carry(let count):
                let now = MonotonicClock.now
                guard first.due <= now else { return wait(.nanoseconds(Int64(first.due - now))) }
                let sent = send(count, to: target)
                if sent < count {
                    step = .carry(count - sent)
                } else {
                    step = faultSequence.next()
                    // In one turn, the bytes of two pieces would be sent together.
                    if case .carry = step { wait(.zero) }
                }
            }
        }
    }

    /// Sends at most `count` bytes of the first arrival.
    private func send(_ count: Int, to target: ByteChannel) -> Int {
        let piece = arrivals[0].bytes.prefix(count)
        arrivals[0].bytes = arrivals[0].bytes.dropFirst(count)
        if arrivals[0].bytes.isEmpty { arrivals.removeFirst() }
        piece.withUnsafeBytes { bytes in target.write { $0.append(bytes) } }
        waitingBytes -= piece.count
        if waitingBytes <= Self.maximumQueuedCount { connection.source(of: self)?.resumeReading() }
        let direction = direction
        core.count { $0.recordBytes(piece.count, direction) }
        return piece.count
    }

    private func wait(_ time: Duration) {
        timer = core.reactor.schedule(after: time) { [weak self] in
            self?.timer = nil
            self?.pump()
        }
    }
}
