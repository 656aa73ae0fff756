internal import Relays
internal import TrebuchetWire

/// A state that is observed by its values in JSON: at a server, or in this process through a filter. When the last reader
/// lets go of it, whoever sends the values is told.
final class RemoteStream: Sendable {
    /// What the stream has come to.
    struct State: Sendable {
        /// The newest value in JSON.
        var update: [UInt8]?
        /// Grows with every value, whatever epoch it is of.
        var count: UInt64 = 0
        var outcome: StreamOutcome?
    }

    let relay: StateRelay<State>
    private let filter: StreamFilter?
    private let userInfo: [CodingUserInfoKey: any Sendable]
    private let release: @Sendable () -> Void

    init(
        relay: StateRelay<State> = StateRelay(State()), filter: StreamFilter?,
        userInfo: [CodingUserInfoKey: any Sendable], release: @escaping @Sendable () -> Void
    ) {
        self.relay = relay
        self.filter = filter
        self.userInfo = userInfo
        self.release = release
    }

    deinit { release() }

    /// Whether a value says that the part which is asked for does not exist, to a reader who has no word for that.
    func isMissing<Value>(_ type: Value.Type, _ update: [UInt8]) -> Bool {
        filter?.path != nil && !(type is any ExpressibleByNilLiteral.Type) && update.elementsEqual("null".utf8)
    }

    /// Decodes a value; one that does not decode ends the stream.
    func decode<Value: Decodable>(_ type: Value.Type, _ update: [UInt8]) -> Value? {
        let coder = ValueCoder(version: .v3, userInfo: userInfo)
        do {
            return try update.withUnsafeBytes { try coder.decode(type, from: $0) }
        } catch {
            let what = filter?.path.map { "the part at '\($0)'" } ?? "the state"
            relay.fail(TrebuchetError(.internal, "\(what) does not decode as \(type): \(describe(error))"))
            return nil
        }
    }
}

extension StateRelay<RemoteStream.State> {
    func take(_ value: [UInt8]) {
        update { state in
            state.update = value
            state.count += 1
        }
    }

    func end(_ outcome: StreamOutcome) {
        update { if $0.outcome == nil { $0.outcome = outcome } }
        finish()
    }

    func fail(_ error: TrebuchetError) { end(.failed(error)) }
}
