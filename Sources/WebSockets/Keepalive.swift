internal import Networking

/// What is known of a connection's silence, counted in beats: a quarter of the ping interval. No clock is read for it,
/// and a message costs two stores. Pure.
struct Keepalive {
    enum Action: Equatable {
        case nothing
        case ping
        /// The peer is taken for dead.
        case giveUp(String)
        /// No message came for too long.
        case closeIdle
        /// A message was begun too long ago and is not whole.
        case closeUnfinished
    }

    /// The times of a connection in beats.
    struct Times: Sendable {
        private static let beatsPerInterval = 4

        let beat: Duration
        let ping: UInt16
        let giveUp: UInt16
        /// 0 for never.
        let idle: UInt16
        let message: UInt16
        let controlFrames: UInt32

        init(_ limits: WebSocketLimits) {
            let interval = limits.pingInterval ?? .seconds(20)
            let beat = max(interval / Self.beatsPerInterval, .milliseconds(1))
            self.beat = beat
            ping = limits.pingInterval == nil ? .max : UInt16(Self.beatsPerInterval)
            giveUp = limits.pingInterval == nil ? .max : ping + Self.beats(limits.pongTimeout, beat)
            idle = limits.idleTimeout.map { Self.beats($0, beat) } ?? 0
            message = Self.beats(limits.messageTimeout, beat)
            controlFrames = UInt32(clamping: max(16, Int(Double(limits.controlFramesPerSecond) * (beat / .seconds(1)))))
        }

        private static func beats(_ time: Duration, _ beat: Duration) -> UInt16 {
            UInt16(clamping: max(1, Int((time / beat).rounded(.up))))
        }
    }

    /// Something has come since the last beat.
    var wasHeard = false
    /// A message has.
    var hadMessage = false
    private var silence: UInt16 = 0
    private var unfinished: UInt16 = 0
    private var idle: UInt16 = 0
    private var controlFrames: UInt32 = 0

    /// Notes a control frame; false when there have been too many since the last beat.
    mutating func countControlFrame(_ times: Times) -> Bool {
        controlFrames += 1
        return controlFrames <= times.controlFrames
    }

    /// Whether it is time for a ping, or later.
    func isOverdue(_ times: Times) -> Bool { !wasHeard && silence + 1 >= times.ping }

    /// What a beat asks for. `isUnfinished` when a message is not whole that was not at the beat before, either.
    mutating func beat(_ times: Times, isUnfinished: Bool = false) -> Action {
        controlFrames = 0
        unfinished = isUnfinished ? min(unfinished + 1, .max - 1) : 0
        idle = hadMessage ? 0 : min(idle + 1, .max - 1)
        silence = wasHeard ? 0 : min(silence + 1, .max - 1)
        hadMessage = false
        wasHeard = false
        if unfinished >= times.message { return .closeUnfinished }
        if times.idle > 0, idle >= times.idle { return .closeIdle }
        if silence >= times.giveUp { return .giveUp("no sign of life from the peer") }
        return silence == times.ping ? .ping : .nothing
    }
}

/// The times that all connections of a server keep, or a client's one.
final class ConnectionTimes: Sendable {
    let close: Duration
    let message: Duration
    let keepalive: Keepalive.Times
    let channel: ChannelLimits
    /// For connections over which pages are sent.
    let pageChannel: ChannelLimits

    /// - Parameter accounts: where a server counts what it holds.
    init(_ limits: WebSocketLimits, accounts: (any MemoryAccounts)? = nil) {
        close = limits.closeTimeout
        message = limits.messageTimeout
        keepalive = Keepalive.Times(limits)
        channel = limits.channel(accounts)
        pageChannel = limits.pageChannel(accounts)
    }
}
