internal import Networking

/// The keepalive state of a connection, counted in beats: a quarter of the ping interval. It reads no clock, and a message costs
/// two stores. It does no I/O.
struct Keepalive {
    /// The action that a beat requires.
    enum Action: Equatable {
        case nothing
        case ping
        /// Drops the connection because the peer is considered dead.
        case drop(String)
        /// Closes the connection because no message arrived for too long.
        case closeIdle
        /// Closes the connection because a message has been incomplete for too long.
        case closeUnfinished
    }

    /// The times of a connection in beats.
    struct Times: Sendable {
        private static let beatsPerInterval = 4

        let beat: Duration
        let ping: UInt16
        let dropAfter: UInt16
        /// The idle limit; 0 for never.
        let idle: UInt16
        let message: UInt16
        let controlFrames: UInt32

        init(_ limits: WebSocketLimits) {
            let interval = limits.pingInterval ?? .seconds(20)
            let beat = max(interval / Self.beatsPerInterval, .milliseconds(1))
            self.beat = beat
            ping = limits.pingInterval == nil ? .max : UInt16(Self.beatsPerInterval)
            dropAfter = limits.pingInterval == nil ? .max : ping + Self.beats(limits.pongTimeout, beat)
            idle = limits.idleTimeout.map { Self.beats($0, beat) } ?? 0
            message = Self.beats(limits.messageTimeout, beat)
            controlFrames = UInt32(clamping: max(16, Int(Double(limits.controlFramesPerSecond) * (beat / .seconds(1)))))
        }

        private static func beats(_ time: Duration, _ beat: Duration) -> UInt16 {
            UInt16(clamping: max(1, Int((time / beat).rounded(.up))))
        }
    }

    /// True if any input arrived since the last beat.
    var hasReceivedInput = false
    /// True if a message arrived since the last beat.
    var hadMessage = false
    private var silence: UInt16 = 0
    private var unfinished: UInt16 = 0
    private var idle: UInt16 = 0
    private var controlFrames: UInt32 = 0

    /// Counts a control frame. Returns false if there were too many since the last beat.
    mutating func countControlFrame(_ times: Times) -> Bool {
        controlFrames += 1
        return controlFrames <= times.controlFrames
    }

    /// Returns whether a ping is due or overdue.
    func isOverdue(_ times: Times) -> Bool { !hasReceivedInput && silence + 1 >= times.ping }

    /// Returns the action of a beat. `isUnfinished` is true if a message is incomplete since before the last beat.
    mutating func beat(_ times: Times, isUnfinished: Bool = false) -> Action {
        controlFrames = 0
        unfinished = isUnfinished ? min(unfinished + 1, .max - 1) : 0
        idle = hadMessage ? 0 : min(idle + 1, .max - 1)
        silence = hasReceivedInput ? 0 : min(silence + 1, .max - 1)
        hadMessage = false
        hasReceivedInput = false
        if unfinished >= times.message { return .closeUnfinished }
        if times.idle > 0, idle >= times.idle { return .closeIdle }
        if silence >= times.dropAfter { return .drop("the peer did not respond to a ping") }
        return silence == times.ping ? .ping : .nothing
    }
}

/// The time limits shared by all connections of a server, or those of a client.
final class ConnectionTimeouts: Sendable {
    let close: Duration
    let message: Duration
    let keepalive: Keepalive.Times
    let channel: ChannelLimits
    /// The limits of connections over which pages are sent.
    let pageChannel: ChannelLimits

    /// Creates the limits.
    ///
    /// - Parameter accounts: the memory accounts of a server.
    init(_ limits: WebSocketLimits, accounts: (any MemoryAccountProvider)? = nil) {
        close = limits.closeTimeout
        message = limits.messageTimeout
        keepalive = Keepalive.Times(limits)
        channel = limits.channel(accounts)
        pageChannel = limits.pageChannel(accounts)
    }
}
