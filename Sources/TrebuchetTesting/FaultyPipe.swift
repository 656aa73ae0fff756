internal import Bytes
internal import Networking
internal import Platform
internal import Transports

/// One direction of a connection through a link: takes bytes as they come, and hands them on as its course says.
final class FaultyPipe {
    private struct Arrival {
        var bytes: ArraySlice<UInt8>
        /// Nanoseconds of the monotonic clock.
        let due: UInt64
    }

    /// Above this many bytes nothing more is read.
    private static let mostWaiting = 256 << 10

    let direction: FaultSchedule.Direction
    /// Owns this.
    private unowned let connection: FaultyConnection
    private let core: FaultyLinkCore
    private var course: FaultCourse
    private var step: FaultCourse.Step
    private var arrivals: [Arrival] = []
    private var waitingBytes = 0
    /// Nothing goes on before it fires.
    private var timer: LoopTimer?
    private var hasSourceEnded = false
    private var isStopped = false

    init(_ direction: FaultSchedule.Direction, of connection: FaultyConnection, _ core: FaultyLinkCore) {
        self.direction = direction
        self.connection = connection
        self.core = core
        course = core.schedule.course(ofConnection: connection.number, direction)
        step = course.next()
    }

    func take(_ bytes: UnsafeRawBufferPointer) {
        guard !isStopped else { return }
        arrivals.append(Arrival(bytes: Array(bytes)[...], due: MonotonicClock.now &+ course.delay.nanoseconds))
        waitingBytes += bytes.count
        if waitingBytes > Self.mostWaiting { connection.source(of: self)?.pauseReading() }
        pump()
    }

    /// No more bytes come; those that wait still go.
    func sourceDidEnd() {
        hasSourceEnded = true
        pump()
    }

    /// No more bytes come; those that wait go together when the time is over, whatever the course says.
    func finish(after time: Duration) {
        hasSourceEnded = true
        step = .carry(.max)
        timer?.cancel()
        wait(time)
    }

    /// What waits is lost.
    func stop() {
        isStopped = true
        timer?.cancel()
        timer = nil
        arrivals = []
        waitingBytes = 0
    }

    /// Hands on what may go now.
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
                step = course.next()
                wait(time)
            case .carry(let count):
                let now = MonotonicClock.now
                guard first.due <= now else { return wait(.nanoseconds(Int64(first.due - now))) }
                let sent = send(count, to: target)
                if sent < count {
                    step = .carry(count - sent)
                } else {
                    step = course.next()
                    // Bytes of two pieces would leave together, if it were in one turn.
                    if case .carry = step { wait(.zero) }
                }
            }
        }
    }

    /// Sends at most so many bytes of what came first.
    private func send(_ count: Int, to target: ByteChannel) -> Int {
        let piece = arrivals[0].bytes.prefix(count)
        arrivals[0].bytes = arrivals[0].bytes.dropFirst(count)
        if arrivals[0].bytes.isEmpty { arrivals.removeFirst() }
        piece.withUnsafeBytes { bytes in target.write { $0.append(bytes) } }
        waitingBytes -= piece.count
        if waitingBytes <= Self.mostWaiting { connection.source(of: self)?.resumeReading() }
        let direction = direction
        core.count { $0.note(piece.count, direction) }
        return piece.count
    }

    private func wait(_ time: Duration) {
        timer = core.reactor.schedule(after: time) { [weak self] in
            self?.timer = nil
            self?.pump()
        }
    }
}
