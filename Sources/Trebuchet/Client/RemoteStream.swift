internal import Relays
internal import TrebuchetWire

/// A state that is observed at the server. When the last reader lets go of it, the server is told.
final class RemoteStream: Sendable {
    /// What the stream has come to.
    struct State: Sendable {
        /// The newest value in JSON; nil as well while `kept` has what it is made of.
        var update: [UInt8]?
        /// Grows with every value, whatever epoch it is of.
        var count: UInt64 = 0
        var outcome: StreamOutcome?
    }

    let relay = StateRelay(State())
    /// Of a state that knows its changes: the value, to which they are applied.
    let kept: (any KeptState)?
    private let number: UInt64
    private let core: ClientCore

    init(number: UInt64, core: ClientCore, kept: (any KeptState)? = nil) {
        self.number = number
        self.core = core
        self.kept = kept
    }

    deinit { core.stopObserving(number) }

    /// The value that `state` tells of, or a newer one, with its count; nil when it is not to be had.
    ///
    /// A value that does not decode ends the stream; for one whose changes do not fit, the server is asked for a whole one.
    func value<Value: Decodable>(
        _ type: Value.Type, of state: State, kept: (any KeptState<Value>)?
    ) -> (value: Value, count: UInt64)? {
        if let text = state.update { return decode(type, text).map { ($0, state.count) } }
        do {
            return try kept?.newest(userInfo: core.userInfo)
        } catch is ChangesMisfit {
            core.restart(number)
        } catch {
            fail(type, error)
        }
        return nil
    }

    private func decode<Value: Decodable>(_ type: Value.Type, _ update: [UInt8]) -> Value? {
        let coder = ValueCoder(version: .v3, userInfo: core.userInfo)
        do {
            return try update.withUnsafeBytes { try coder.decode(type, from: $0) }
        } catch {
            fail(type, error)
            return nil
        }
    }

    private func fail(_ type: Any.Type, _ error: any Error) {
        relay.fail(TrebuchetError(.internal, "the state does not decode as \(type): \(describe(error))"))
    }
}

extension StateRelay<RemoteStream.State> {
    /// Takes a value; nil for one that is kept elsewhere.
    func take(_ value: [UInt8]?) {
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
