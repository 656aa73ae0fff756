public import Trebuchet

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// `board`: what `trebuchet bench fanout` publishes to, and `bench rpc --size` and `--uuid` call.
@Trebuchet
public distributed actor Board {
    public struct State: Codable, Sendable {
        /// When it was published, in nanoseconds of the publisher's clock.
        public var stamp = 0
        public var padding = ""
    }

    @StreamedState public var state: State = State()

    public distributed func publish(stamp: Int) { state.stamp = stamp }

    /// Changes all of the state, so that no difference is smaller than the whole.
    public distributed func rewrite(stamp: Int) {
        state = State(
            stamp: stamp, padding: String(repeating: stamp % 2 == 0 ? "x" : "y", count: state.padding.utf8.count))
    }

    public distributed func same(_ id: UUID) -> UUID { id }

    public distributed func length(of text: String) -> Int { text.utf8.count }

    /// Makes the encoded state about so many bytes.
    public distributed func resize(_ bytes: Int) {
        state.padding = String(repeating: "x", count: min(max(0, bytes - 45), 1 << 20))
    }
}
