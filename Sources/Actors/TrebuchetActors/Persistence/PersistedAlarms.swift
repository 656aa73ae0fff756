internal import Platform
internal import Transports

/// The namespaces of alarms.
package enum AlarmNamespace {
    /// The alarms of each actor that has any, under its name.
    package static let alarms = "alarms"
    /// A row without a value for each of these actors, in the order of the times at which their next alarms are due.
    package static let times = "alarmTimes"
    /// The number of digits of a time.
    private static let digits = 16

    package static func key(_ actor: String) -> StateKey { StateKey(alarms, actor, partition: actor) }

    /// Returns the name before those of all rows with this time or a later one.
    package static func start(of time: Int64) -> String {
        let text = "\(max(0, min(time, AlarmTable.latest)))"
        return String(repeating: "0", count: digits - text.utf8.count) + text
    }

    package static func rowName(_ time: Int64, _ actor: String) -> String { "\(start(of: time))/\(actor)" }

    package static func row(_ time: Int64, _ actor: String) -> StateKey {
        StateKey(times, rowName(time, actor), partition: actor)
    }

    /// Returns the time and the actor of a row; nil for another name.
    package static func parse(_ name: String) -> (time: Int64, actor: String)? {
        let bytes = name.utf8
        guard bytes.count > digits + 1, let time = Int64(String(decoding: bytes.prefix(digits), as: UTF8.self)),
            time >= 0, bytes[bytes.index(bytes.startIndex, offsetBy: digits)] == UInt8(ascii: "/")
        else { return nil }
        return (time, String(decoding: bytes.dropFirst(digits + 1), as: UTF8.self))
    }
}

/// The settings of alarms at one server.
package struct AlarmSettings: Sendable {
    /// The maximum number of alarms of an actor, and sizes in bytes.
    package var (perActor, nameBytes, payloadBytes) = (100, 128, 1_024)
    /// The maximum number of attempts to deliver one alarm.
    package var attempts = 10
    /// Returns the time of day in milliseconds since 1970.
    package var now: @Sendable () -> Int64
    /// Called after the next alarm of an actor was written with this time.
    package var didSchedule: @Sendable (_ time: Int64) -> Void

    /// Creates settings with the default limits.
    package init(now: @escaping @Sendable () -> Int64, didSchedule: @escaping @Sendable (_ time: Int64) -> Void) {
        (self.now, self.didSchedule) = (now, didSchedule)
    }
}

/// The persisted alarms of one actor: a value with all of them, and a row with the time of the next one, by which the server finds
/// due alarms without the actor.
///
/// Only on the reactor of its actor, except for constants.
package final class PersistedAlarms: Sendable {
    /// Failed writes with unknown outcomes may leave several rows.
    private static let maximumRows = 16

    private let actor: String
    private let settings: AlarmSettings
    private weak let states: PersistedStates?
    private let state: LoopVariable<State>

    /// The alarms, and what the store has of them.
    private struct State {
        var table: AlarmTable
        /// The times of the rows that the store may have, at most `maximumRows`: a row that is missing here is deleted when it is due.
        var rows: Set<Int64>
        var hasChanged = false
        /// Set while a write has the alarms; `writtenTime` is then the time of its row, nil for none.
        var isWriting = false
        var writtenTime: Int64?
        /// The rows that this write deletes.
        var deletedRows: Set<Int64> = []
    }

    init(_ table: AlarmTable, of actor: String, _ settings: AlarmSettings, by states: PersistedStates) {
        (self.actor, self.settings, self.states) = (actor, settings, states)
        state = LoopVariable(
            State(table: table, rows: table.nextTime.map { [$0] } ?? []), on: states.home.reactor)
    }

    // MARK: Alarms

    func set(_ name: String, at time: Int64, every interval: Duration?, json: String?) throws(TrebuchetError) {
        try check()
        guard (1...settings.nameBytes).contains(name.utf8.count) else {
            throw invalid("the name of an alarm has 1 to \(settings.nameBytes) bytes (ServerLimits.alarms.nameBytes)")
        }
        if let interval, interval < ActorAlarms.minimumInterval {
            throw invalid("the interval of alarm '\(name)' is shorter than \(ActorAlarms.minimumInterval)")
        }
        if let json, json.utf8.count > settings.payloadBytes {
            throw invalid(
                "the payload of alarm '\(name)' has \(json.utf8.count) bytes; the limit is \(settings.payloadBytes) "
                    + "(ServerLimits.alarms.payloadBytes)")
        }
        guard state.value.table.contains(name) || state.value.table.count < settings.perActor else {
            throw TrebuchetError(
                .rateLimited,
                "actor '\(actor)' has \(state.value.table.count) alarms (ServerLimits.alarms.perActor); cancel one before setting '\(name)'"
            )
        }
        let milliseconds = interval.map { min(Int64($0.milliseconds), AlarmTable.latest) }
        // A time in the past would put it before alarms of other actors that are late.
        let time = max(time, settings.now())
        state.value.table.set(AlarmTable.Entry(name: name, due: time, interval: milliseconds, payload: json))
        didChange()
    }

    func cancel(_ name: String) throws(TrebuchetError) -> Bool {
        try check()
        guard state.value.table.cancel(name) else { return false }
        didChange()
        return true
    }

    var pending: [Alarm] { state.value.table.entries.map { Alarm($0) } }

    /// Returns after all changes up to now are written.
    func written(isolation: isolated (any Actor)?) async throws(TrebuchetError) {
        guard let states else { throw ended }
        let error: TrebuchetError? = await withCheckedContinuation { continuation in
            states.whenWritten { continuation.resume(returning: $0) }
        }
        if let error { throw error }
    }

    private func check() throws(TrebuchetError) { if states?.isOpen != true { throw ended } }

    private var ended: TrebuchetError {
        TrebuchetError(.unavailable, "actor '\(actor)' was deactivated, so its alarms can no longer be changed")
    }

    private func invalid(_ message: String) -> TrebuchetError { TrebuchetError(.invalidArguments, message) }

    private func didChange() {
        // After the actor's deactivation its next activation has the alarms.
        guard let states, states.isOpen else { return }
        state.value.hasChanged = true
        states.didChange()
    }

    // MARK: Delivery

    /// The time at which the next alarm is due; nil without alarms.
    package var nextTime: Int64? { state.value.table.nextTime }

    /// Returns the alarms that are due, in the order of their times.
    ///
    /// - Parameter row: the time of the row that the server has found. If no alarm has written it, it is deleted.
    package func due(at now: Int64, row: Int64) -> [DueAlarm] {
        if !state.value.rows.contains(row) {
            insertRow(row)
            didChange()
        }
        return state.value.table.due(at: now)
    }

    private func insertRow(_ time: Int64) {
        if state.value.rows.count >= Self.maximumRows { state.value.rows.removeFirst() }
        state.value.rows.insert(time)
    }

    /// Begins a delivery, immediately before its method runs. Returns false if the method must not run.
    func begin(_ due: DueAlarm) throws(TrebuchetError) -> Bool { try state.value.table.begin(due) }

    /// Notes that the method of a delivery has ended.
    func end(_ due: DueAlarm) { state.value.table.end(due) }

    /// Ends a delivery. Returns false if the alarm was cancelled or set again meanwhile.
    func complete(_ due: DueAlarm) -> Bool {
        guard state.value.table.complete(due, at: settings.now()) else { return false }
        didChange()
        return true
    }

    /// Ends a delivery whose method threw an error.
    package func fail(_ due: DueAlarm) -> AlarmTable.Consequence {
        let consequence = state.value.table.fail(due, at: settings.now(), attempts: settings.attempts)
        if consequence != .none { didChange() }
        return consequence
    }

    // MARK: Persistence

    /// Returns the next writes.
    func changes() -> [StateWrite] {
        guard state.value.hasChanged else { return [] }
        state.value.hasChanged = false
        let next = state.value.table.nextTime
        (state.value.isWriting, state.value.writtenTime) = (true, next)
        state.value.deletedRows = state.value.rows.filter { $0 != next }
        var writes = state.value.deletedRows.map { StateWrite.delete(AlarmNamespace.row($0, actor)) }
        writes.append(
            next == nil ? .delete(AlarmNamespace.key(actor)) : .put(state.value.table.bytes, AlarmNamespace.key(actor)))
        if let next {
            writes.append(.put([], AlarmNamespace.row(next, actor)))
            insertRow(next)
        }
        return writes
    }

    /// Confirms that the returned writes are stored.
    func didWrite() {
        guard state.value.isWriting else { return }
        state.value.isWriting = false
        // A row that the server has found during the write is deleted by the next one.
        state.value.rows.subtract(state.value.deletedRows)
        if let writtenTime = state.value.writtenTime { settings.didSchedule(writtenTime) }
    }

    /// Schedules the alarms again after a failed write or an unknown outcome, after which the store may have the rows of both.
    func scheduleRewrite() {
        state.value.hasChanged = state.value.hasChanged || state.value.isWriting
        state.value.isWriting = false
    }
}
