extension FaultyLink {
    /// The kinds and frequencies of a link's faults. The link's seed determines all choices within these bounds.
    public struct Faults: Hashable, Sendable {
        /// The number of bytes in one direction after which a connection is cut. Nil, the default, for never.
        public var cutAfterBytes: ClosedRange<Int>?
        /// The proportion of cuts that are resets, from 0 to 1. Default 0: carried bytes arrive, and then the end of
        /// the stream.
        public var resets = 0.0
        /// The proportion of cuts that leave the server's side open, from 0 to 1. Default 0.
        public var halfOpens = 0.0
        /// The proportion of cuts after which the bytes sent by the client arrive late, from 0 to 1. Default 0.
        public var lateDeliveries = 0.0
        /// The time for which the server's side of such connections stays open, and silent. Default 0.1 to 1 second.
        public var halfOpenTime: ClosedRange<Duration> = .milliseconds(100)...(.seconds(1))
        /// The number of bytes in one direction between two stalls. Nil, the default, for no stalls.
        public var stallAfterBytes: ClosedRange<Int>?
        /// The duration of a stall. Default 10 to 100 milliseconds.
        public var stallTime: ClosedRange<Duration> = .milliseconds(10)...(.milliseconds(100))
        /// The delay of bytes in one direction of a connection, constant for all of them. Nil, the default, for no
        /// delay.
        public var delay: ClosedRange<Duration>?
        /// The sizes of the pieces that bytes are split into, each sent separately. Nil, the default, for no splits.
        public var chunkBytes: ClosedRange<Int>?

        /// Creates settings without faults.
        public init() {}

        /// No faults, unless the test requests them; equal to ``init()``.
        public static let none = Faults()

        /// A bad network: occasional cuts, small stalls and delays.
        public static let mild: Faults = {
            var faults = Faults()
            faults.cutAfterBytes = 16_384...1_048_576
            faults.resets = 0.3
            faults.halfOpens = 0.2
            faults.stallAfterBytes = 32_768...262_144
            faults.stallTime = .milliseconds(5)...(.milliseconds(50))
            faults.delay = .zero...(.milliseconds(2))
            faults.chunkBytes = 1...4_096
            return faults
        }()

        /// A link on which most connections are short, and some end in the handshake.
        public static let harsh: Faults = {
            var faults = Faults()
            faults.cutAfterBytes = 1...16_384
            faults.resets = 0.4
            faults.halfOpens = 0.3
            faults.stallAfterBytes = 512...8_192
            faults.stallTime = .milliseconds(1)...(.milliseconds(100))
            faults.delay = .zero...(.milliseconds(5))
            faults.chunkBytes = 1...128
            return faults
        }()
    }

    /// The way a connection is cut.
    public enum Cut: Hashable, Sendable {
        /// The carried bytes arrive, followed by the end of the stream, on both sides.
        case inOrder
        /// Both sides are reset at once, as when a machine on the path restarts.
        case reset
        /// The client's side is reset. The server's side stays open for this duration: it is not read, and sends
        /// nothing.
        case halfOpen(Duration)
        /// The client's side is reset. The bytes it had sent before arrive after this duration, concurrently with its
        /// other connections; nothing comes from the server.
        case late(Duration)
    }
}
