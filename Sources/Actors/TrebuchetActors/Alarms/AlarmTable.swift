internal import Bytes
internal import Platform
internal import TrebuchetWire

/// The alarms of one actor. Times are milliseconds since 1970.
package struct AlarmTable: Sendable {
    /// The stored form of an alarm.
    package struct Entry: Codable, Equatable, Sendable {
        package let name: String
        /// The time that it was set for, or that of its current period.
        package fileprivate(set) var due: Int64
        /// The interval of a recurring alarm.
        package let interval: Int64?
        /// The payload as JSON.
        package let payload: String?
        /// The number of failed attempts of the current period.
        package fileprivate(set) var failures: Int?
        /// The time of the next attempt after a failure.
        package fileprivate(set) var retry: Int64?

        /// The time of the next attempt.
        package var time: Int64 { retry ?? due }

        /// Creates an alarm that has not been attempted.
        package init(name: String, due: Int64, interval: Int64? = nil, payload: String? = nil) {
            (self.name, self.due, self.interval, self.payload) = (name, due, interval, payload)
        }
    }

    /// An entry, with a number that changes when it is set or begins another period. A delivery that ends later has no effect on the
    /// entry.
    private struct Slot {
        var entry: Entry
        var revision: UInt64
    }

    /// The consequence of a failed attempt.
    package enum Consequence: Equatable, Sendable {
        /// The next attempt follows after this time.
        case retry(Duration)
        /// The alarm is removed after too many attempts; a recurring one waits for its next period.
        case dropped
        /// The alarm was set again or cancelled meanwhile.
        case none
    }

    /// The delays between the attempts of one alarm.
    static let backoff = Backoff(first: .seconds(1), limit: .seconds(600))
    /// The latest time: the one of the largest row name.
    package static let latest: Int64 = 9_999_999_999_999_999

    private var slots: [Slot] = []
    private var lastRevision: UInt64 = 0
    /// The names of alarms whose methods run, also after their time limits and after they were set again or cancelled.
    private var running: Set<ByteText> = []

    /// Creates an empty table.
    package init() {}

    package var isEmpty: Bool { slots.isEmpty }
    package var count: Int { slots.count }

    /// The time of the next attempt of any alarm; nil without alarms.
    package var nextTime: Int64? { slots.lazy.map(\.entry.time).min() }

    /// All alarms, in the order of their times.
    package var entries: [Entry] { sorted(slots).map(\.entry) }

    package func contains(_ name: String) -> Bool { slots.contains { $0.entry.name.isSameBytes(as: name) } }

    /// Adds an alarm, and replaces one with the same name.
    package mutating func set(_ entry: Entry) {
        cancel(entry.name)
        slots.append(Slot(entry: entry, revision: nextRevision()))
    }

    /// Removes an alarm. Returns false if there is none of the name.
    @discardableResult
    package mutating func cancel(_ name: String) -> Bool {
        guard let index = slots.firstIndex(where: { $0.entry.name.isSameBytes(as: name) }) else { return false }
        slots.remove(at: index)
        return true
    }

    /// Returns the alarms whose time has come, in the order of their times.
    package func due(at now: Int64) -> [DueAlarm] {
        sorted(slots.filter { $0.entry.time <= now }).map { DueAlarm(alarm: Alarm($0.entry), revision: $0.revision) }
    }

    /// Begins a delivery, immediately before its method runs.
    ///
    /// - Returns: false if the alarm was cancelled, set again or attempted meanwhile: the method must not run.
    /// - Throws: `timeout` if the method still runs since an earlier attempt.
    package mutating func begin(_ due: DueAlarm) throws(TrebuchetError) -> Bool {
        guard let index = index(of: due) else { return false }
        let name = ByteText(due.alarm.name)
        guard !running.contains(name) else {
            throw TrebuchetError(.timeout, "alarm(_:) still runs since an earlier attempt")
        }
        guard (slots[index].entry.failures ?? 0) + 1 == due.alarm.attempt else { return false }
        running.insert(name)
        return true
    }

    /// Notes that the method of a delivery has ended.
    package mutating func end(_ due: DueAlarm) { running.remove(ByteText(due.alarm.name)) }

    /// Ends a delivery: removes the alarm, or moves a recurring one to its next period after `now`. A method that succeeds after its time
    /// limit has succeeded.
    ///
    /// - Returns: false if the alarm was cancelled or set again meanwhile.
    @discardableResult
    package mutating func complete(_ due: DueAlarm, at now: Int64) -> Bool {
        guard let index = index(of: due) else { return false }
        finish(index, at: now)
        return true
    }

    /// Ends a delivery whose method threw an error.
    ///
    /// - Parameter attempts: the maximum number of attempts.
    package mutating func fail(_ due: DueAlarm, at now: Int64, attempts: Int) -> Consequence {
        guard let index = index(of: due) else { return .none }
        let failures = (slots[index].entry.failures ?? 0) + 1
        guard failures < attempts else {
            finish(index, at: now)
            return .dropped
        }
        let delay = Self.backoff.delay(afterFailures: failures)
        slots[index].entry.failures = failures
        slots[index].entry.retry = now + Int64(delay.milliseconds)
        return .retry(delay)
    }

    private mutating func finish(_ index: Int, at now: Int64) {
        guard let interval = slots[index].entry.interval, interval > 0 else {
            slots.remove(at: index)
            return
        }
        let due = slots[index].entry.due
        // Periods that passed during an outage are skipped.
        slots[index].entry.due = min(due + interval * (max(0, now - due) / interval + 1), Self.latest)
        slots[index].entry.failures = nil
        slots[index].entry.retry = nil
        slots[index].revision = nextRevision()
    }

    private func index(of due: DueAlarm) -> Int? { slots.firstIndex { $0.revision == due.revision } }

    private func sorted(_ slots: [Slot]) -> [Slot] {
        slots.sorted { ($0.entry.time, $0.revision) < ($1.entry.time, $1.revision) }
    }

    private mutating func nextRevision() -> UInt64 {
        lastRevision += 1
        return lastRevision
    }

    // MARK: The stored form

    /// The stored form of all alarms.
    private struct Form: Codable {
        var alarms: [Entry]
    }

    package var bytes: [UInt8] {
        var buffer = ByteBuffer()
        do {
            try ValueCoder().encode(Form(alarms: entries), into: &buffer)
        } catch {
            // unreachable from data: texts and integers can always be encoded.
            preconditionFailure("the alarms of an actor cannot be encoded: \(error)")
        }
        return Array(buffer.bytes)
    }

    /// Decodes stored alarms. Throws if the bytes or a time are invalid.
    package init(_ bytes: [UInt8]) throws {
        let form = try bytes.withUnsafeBytes { try ValueCoder().decode(Form.self, from: $0) }
        for entry in form.alarms {
            let times = [entry.due, entry.interval ?? 0, entry.retry ?? 0]
            guard times.allSatisfy({ (0...Self.latest).contains($0) }), (0...1_000_000).contains(entry.failures ?? 0)
            else {
                throw TrebuchetError(.internal, "the stored alarm '\(entry.name)' has an invalid time")
            }
            set(entry)
        }
    }
}

/// An alarm whose time has come.
package struct DueAlarm: Sendable {
    package let alarm: Alarm
    /// The number of the change that scheduled it.
    let revision: UInt64
}
