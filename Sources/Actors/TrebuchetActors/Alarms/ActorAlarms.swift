internal import Bytes
internal import Distributed
internal import Platform
internal import TrebuchetWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension TrebuchetActor {
    /// The alarms of this actor. They are persisted together with its states, in the server's store or for an actor with
    /// `placement: .cluster` in the coordination store, and wake the actor when it is not active.
    ///
    /// The actor receives them with `func alarm(_ alarm: Alarm)`, declared in its body, which may be `async` and may throw.
    public var alarms: ActorAlarms {
        if Self.dispatch.alarm == nil {
            return ActorAlarms(
                TrebuchetError(
                    .internal, "alarms need a 'func alarm(_ alarm: Alarm)' in the declaration of \(Self.self)"))
        }
        guard let alarms = actorSystem.alarms(of: id) else {
            return ActorAlarms(
                TrebuchetError(
                    .internal,
                    "actor '\(id)' cannot have alarms here: they need a server with a store, or placement: .cluster and a coordination "
                        + "store with tables, and an actor that is exposed and runs on a reactor; it can set them from its activate() on"
                ))
        }
        return ActorAlarms(alarms)
    }
}

/// The alarms of one actor, for use in its isolation.
///
/// A change is written together with the changes of states that the actor makes in the same turn: the store has all of them or
/// none. The response of the call is sent after the write.
public struct ActorAlarms {
    private let alarms: Result<PersistedAlarms, TrebuchetError>

    init(_ alarms: PersistedAlarms) { self.alarms = .success(alarms) }
    init(_ error: TrebuchetError) { alarms = .failure(error) }

    /// The shortest interval of a recurring alarm.
    public static let minimumInterval = Duration.seconds(1)

    /// Sets an alarm, and replaces one with the same name. Synchronous methods use this form; the response of their call is sent
    /// after the alarm is written.
    ///
    /// - Parameters:
    ///   - name: the name, of at most 128 bytes (`ServerLimits.alarms.nameBytes`).
    ///   - date: the due time. The alarm is never delivered earlier by the clock of the server that delivers it; one in the past is
    ///     due immediately.
    ///   - interval: the interval of a recurring alarm, at least one second; nil, the default, for a single one.
    ///   - payload: a value for the delivery, of at most 1 KiB as JSON (`ServerLimits.alarms.payloadBytes`); none by default.
    /// - Throws: `invalidArguments` for a name, interval or payload that is not permitted, `rateLimited` if the actor has too many
    ///   alarms (`ServerLimits.alarms.perActor`), `internal` if it cannot have alarms.
    public func set(
        _ name: String, at date: Date, every interval: Duration? = nil, payload: (any Encodable)? = nil
    ) throws(TrebuchetError) {
        try alarms.get().set(name, at: Self.time(of: date), every: interval, json: Self.json(payload, of: name))
    }

    /// Sets an alarm like the synchronous form, and returns after it is written, with all changes of states up to now.
    ///
    /// - Throws: also the error of the write.
    public func set(
        _ name: String, at date: Date, every interval: Duration? = nil, payload: (any Encodable)? = nil,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(TrebuchetError) {
        let alarms = try alarms.get()
        try alarms.set(name, at: Self.time(of: date), every: interval, json: Self.json(payload, of: name))
        try await alarms.written(isolation: isolation)
    }

    /// Cancels an alarm. A delivery that has begun is not interrupted, but is not repeated either.
    ///
    /// - Returns: false if there is no alarm of the name.
    /// - Throws: `internal` if the actor cannot have alarms.
    @discardableResult
    public func cancel(_ name: String) throws(TrebuchetError) -> Bool { try alarms.get().cancel(name) }

    /// The alarms that wait, in the order of their times; empty if the actor cannot have alarms.
    public var pending: [Alarm] { (try? alarms.get())?.pending ?? [] }

    /// Rounds up, because an alarm is never early.
    private static func time(of date: Date) throws(TrebuchetError) -> Int64 {
        let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded(.up)
        guard !milliseconds.isNaN else {
            throw TrebuchetError(.invalidArguments, "the time of the alarm is not a number")
        }
        guard milliseconds > 0 else { return 0 }
        return milliseconds < Double(AlarmTable.latest) ? Int64(milliseconds) : AlarmTable.latest
    }

    private static func json(_ payload: (any Encodable)?, of name: String) throws(TrebuchetError) -> String? {
        guard let payload else { return nil }
        return try json(encoding: payload, of: name)
    }

    private static func json(encoding payload: some Encodable, of name: String) throws(TrebuchetError) -> String {
        var buffer = ByteBuffer()
        do {
            try ValueCoder().encode(payload, into: &buffer)
        } catch {
            throw TrebuchetError(
                .invalidArguments, "the payload of alarm '\(name.prefix(bytes: 128))' cannot be encoded: \(error)")
        }
        return String(decoding: buffer.bytes, as: UTF8.self)
    }
}
