internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster

/// The tables of alarm rows in the coordination store, one for each slot, and the names of their rows.
///
/// A row has the time of an actor's next alarm, the position in the actor's log behind which the alarm was written, and the actor's
/// name. Because of the position, no name is used for two alarms: a late deletion of a row never affects another one.
enum SlotAlarmRows {
    /// The tables by slot number. A table is in its slot, like the logs of the slot. If a server of the coordination store
    /// loses its newest writes, it loses a log entry with the rows that were written after it, never the row alone.
    static let tables: [ClusterTable] = {
        var tables = [ClusterTable?](repeating: nil, count: ClusterSlot.count)
        var (missing, number) = (ClusterSlot.count, 0)
        while missing > 0 {
            let table = ClusterTable("alarms \(number)")
            number += 1
            guard tables[table.slot.number] == nil else { continue }
            tables[table.slot.number] = table
            missing -= 1
        }
        return tables.compactMap { $0 }
    }()

    static func table(of slot: ClusterSlot) -> ClusterTable { tables[slot.number] }

    /// The number of digits of a time, and of a position.
    private static let timeDigits = 16
    private static let positionDigits = 32

    /// Returns the row of an actor whose next alarm is due at a time.
    ///
    /// - Parameter position: the end of the actor's log before the entry with the alarm, under the fence of that entry.
    static func row(_ time: Int64, _ actor: String, at position: LogPosition) -> AlarmRow {
        let head = "\(AlarmNamespace.start(of: time))/\(hex(position.fence))\(hex(position.offset))"
        return AlarmRow(time: time, actor: actor, name: "\(head)/\(actor)")
    }

    private static func hex(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: positionDigits / 2 - digits.utf8.count) + digits
    }

    /// Returns the row of a name; nil for a name that no node writes.
    static func row(named name: String) -> AlarmRow? {
        let bytes = Array(name.utf8)
        let second = timeDigits + 1 + positionDigits
        guard bytes.count > second + 1, bytes[timeDigits] == UInt8(ascii: "/"), bytes[second] == UInt8(ascii: "/"),
            let time = Int64(String(decoding: bytes[..<timeDigits], as: UTF8.self)), time >= 0
        else { return nil }
        return AlarmRow(time: time, actor: String(decoding: bytes[(second + 1)...], as: UTF8.self), name: name)
    }

    // MARK: In the log

    /// Returns the bytes of a position, as the value of a row's key in the actor's log.
    static func bytes(of position: LogPosition) -> [UInt8] {
        var bytes: [UInt8] = []
        BinaryFields.append(position.fence, to: &bytes)
        BinaryFields.append(position.offset, to: &bytes)
        return bytes
    }

    static func position(_ bytes: [UInt8]) -> LogPosition? {
        var rest = bytes[...]
        guard let fence = BinaryFields.number(UInt64.self, &rest), let offset = BinaryFields.number(UInt64.self, &rest)
        else { return nil }
        return LogPosition(fence: fence, offset: offset)
    }
}

/// The rows of one actor, as in its log: the positions by their times.
typealias ActorAlarmRows = [Int64: LogPosition]

extension ActorLogContents {
    /// The rows of the actor.
    var alarmRows: ActorAlarmRows {
        var rows: ActorAlarmRows = [:]
        for (name, value) in values(in: AlarmNamespace.times) {
            guard let time = AlarmNamespace.parse(name)?.time, let position = SlotAlarmRows.position(value) else {
                continue
            }
            rows[time] = position
        }
        return rows
    }
}

/// The effect of a write of an actor on its rows: a row is inserted before the entry is appended to the log, and removed after it. A
/// crash in between leaves a row without an alarm, never an alarm without a row.
struct AlarmRowChange {
    /// The writes for the log.
    private(set) var writes: [StateWrite] = []
    private(set) var inserted: [AlarmRow] = []
    private(set) var removed: [AlarmRow] = []
    /// The times of removed rows. Other rows of the actor with these times have no alarm either.
    private(set) var removedTimes: [Int64] = []
    /// The rows of the actor after the write.
    private(set) var rows: ActorAlarmRows

    /// Returns nil for writes without rows.
    ///
    /// - Parameters:
    ///   - rows: the rows of the actor before the write.
    ///   - position: the position behind which the entry is appended, under the fence of the entry.
    init?(_ all: [StateWrite], of actor: String, in rows: ActorAlarmRows, at position: LogPosition) {
        guard all.contains(where: { $0.key.namespace == AlarmNamespace.times }) else { return nil }
        self.rows = rows
        for write in all {
            guard write.key.namespace == AlarmNamespace.times,
                let time = AlarmNamespace.parse(write.key.name)?.time
            else {
                writes.append(write)
                continue
            }
            if write.operation == .delete {
                removedTimes.append(time)
                guard let known = self.rows.removeValue(forKey: time) else { continue }
                removed.append(SlotAlarmRows.row(time, actor, at: known))
                writes.append(write)
            } else if self.rows[time] == nil {
                self.rows[time] = position
                inserted.append(SlotAlarmRows.row(time, actor, at: position))
                writes.append(.put(SlotAlarmRows.bytes(of: position), write.key))
            }
        }
    }
}
