internal import Relays
internal import TrebuchetWire

/// A state that is observed at the server. When the last reader lets go of it, the server is told.
final class RemoteStream: Sendable {
    /// What the stream has come to.
    struct State: Sendable {
        /// The newest value in JSON.
        var update: [UInt8]?
        /// Grows with every value, whatever epoch it is of.
        var count: UInt64 = 0
        var outcome: StreamOutcome?
    }

    let relay = StateRelay(State())
    private let number: UInt64
    private let core: ClientCore

    init(number: UInt64, core: ClientCore) {
        self.number = number
        self.core = core
    }

    deinit { core.stopObserving(number) }

    /// Decodes a value; one that does not decode ends the stream.
    func decode<Value: Decodable>(_ type: Value.Type, _ update: [UInt8]) -> Value? {
        let coder = ValueCoder(version: .v3, userInfo: core.userInfo)
        do {
            return try update.withUnsafeBytes { try coder.decode(type, from: $0) }
        } catch {
            relay.fail(TrebuchetError(.internal, "the state does not decode as \(type): \(describe(error))"))
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
