extension FaultyLink {
    /// What goes wrong on a link, and how often. All choices within these bounds come from the link's seed.
    public struct Faults: Hashable, Sendable {
        /// After how many bytes in one direction a connection is cut. Nil, the default, for never.
        public var cutAfterBytes: ClosedRange<Int>?
        /// What part of the cuts are resets, from 0 to 1. Default 0: what was carried arrives, and then the end.
        public var resets = 0.0
        /// What part of the cuts leave the server's side open, from 0 to 1. Default 0.
        public var halfOpens = 0.0
        /// What part of the cuts let what the client has sent arrive late, from 0 to 1. Default 0.
        public var lates = 0.0
        /// How long the server's side of such connections stays open, and silent. Default 0.1 to 1 second.
        public var halfOpenTime: ClosedRange<Duration> = .milliseconds(100)...(.seconds(1))
        /// How many bytes go in one direction from one stall of it to the next. Nil, the default, for no stalls.
        public var stallAfterBytes: ClosedRange<Int>?
        /// How long a stall lasts. Default 10 to 100 milliseconds.
        public var stallTime: ClosedRange<Duration> = .milliseconds(10)...(.milliseconds(100))
        /// How long bytes are on their way in one direction of a connection: the same for all of them. Nil, the default, for
        /// no delay.
        public var delay: ClosedRange<Duration>?
        /// The sizes of the pieces that bytes are split into, each sent by itself. Nil, the default, for no splits.
        public var pieceBytes: ClosedRange<Int>?

        /// Nothing goes wrong, unless the test asks for it.
        public init() {}

        /// Nothing goes wrong, unless the test asks for it; the same as ``init()``.
        public static let none = Faults()

        /// A bad network: connections that end now and then, small stalls and delays.
        public static let mild: Faults = {
            var faults = Faults()
            faults.cutAfterBytes = 16_384...1_048_576
            faults.resets = 0.3
            faults.halfOpens = 0.2
            faults.stallAfterBytes = 32_768...262_144
            faults.stallTime = .milliseconds(5)...(.milliseconds(50))
            faults.delay = .zero...(.milliseconds(2))
            faults.pieceBytes = 1...4_096
            return faults
        }()

        /// A link on which hardly a connection gets far, some not through the handshake.
        public static let harsh: Faults = {
            var faults = Faults()
            faults.cutAfterBytes = 1...16_384
            faults.resets = 0.4
            faults.halfOpens = 0.3
            faults.stallAfterBytes = 512...8_192
            faults.stallTime = .milliseconds(1)...(.milliseconds(100))
            faults.delay = .zero...(.milliseconds(5))
            faults.pieceBytes = 1...128
            return faults
        }()
    }

    /// How a connection is cut.
    public enum Cut: Hashable, Sendable {
        /// What was carried arrives, and then the end of the stream, on both sides.
        case inOrder
        /// Both sides are reset at once, as when a machine on the way loses its memory.
        case reset
        /// The client's side is reset. The server's side stays open for this long: it is not read, and nothing comes from it.
        case halfOpen(Duration)
        /// The client's side is reset. What it had sent before arrives after this long, beside what it sends over other
        /// connections by then; nothing comes from the server.
        case late(Duration)
    }
}
