public import Trebuchet

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// `board`: the actor of `trebuchet bench fanout`, and of `bench rpc --size` and `--uuid`.
@Trebuchet
public distributed actor Board {
    public struct State: Codable, Sendable {
        /// The time of publication in nanoseconds of the publisher's clock.
        public var stamp = 0
        public var padding = ""
    }

    @StreamedState public var state: State = State()

    public distributed func publish(stamp: Int) { state.stamp = stamp }

    /// Changes the whole state, so that no delta is smaller than a snapshot.
    public distributed func rewrite(stamp: Int) {
        state = State(
            stamp: stamp, padding: String(repeating: stamp % 2 == 0 ? "x" : "y", count: state.padding.utf8.count))
    }

    public distributed func same(_ id: UUID) -> UUID { id }

    public distributed func length(of text: String) -> Int { text.utf8.count }

    /// Sets the approximate size of the encoded state in bytes.
    public distributed func resize(_ bytes: Int) {
        state.padding = String(repeating: "x", count: min(max(0, bytes - 45), 1 << 20))
    }
}
