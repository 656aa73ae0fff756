internal import TrebuchetActors

/// The recorded versions of an inspected actor.
struct InspectedVersions {
    /// The maximum number of recorded versions of all streams together.
    static let versionLimit = 200
    /// The maximum number of connections listed for a version that they skipped.
    fileprivate static let maximumSkippers = 20
    /// The maximum size in bytes of all recorded updates and of the calls that caused them.
    private static let maximumBytes = 4 << 20
    /// The approximate size of a recorded call in bytes.
    private static let callBytes = 200
    /// The number of versions between two recorded snapshots.
    private static let snapshotInterval = 25
    /// The number of versions recorded in addition to those shown, so that the base of the oldest shown version can be computed
    /// from a snapshot.
    private static let trimThreshold = 2 * snapshotInterval
    /// The maximum number of connections recorded as behind, for each stream.
    private static let maximumLag = 1_000

    /// A recorded version with its causes and deliveries.
    struct Version {
        let stream: String
        let number: UInt64
        let time: Int64
        let bytes: Int
        let calls: [RecentCallBuffer.Entry]
        let moreCalls: Int
        /// The version before it; nil if unknown.
        let previous: UInt64?
        var recording: InspectorStateSubscription.SentVersion?
        var patches = 0
        var snapshots = 0
        var events = 0
        var skipped = 0
        /// The first connections that skipped the version.
        var skippers: [UInt64] = []
        /// True if recording was incomplete: unrecorded calls may have contributed to the version, and earlier versions may be missing.
        var isPartial = false

        /// The number of the version that this one is based on, as far as it is known.
        fileprivate var baseNumber: UInt64 { recording.map { $0.base ?? previous ?? number } ?? 0 }

        fileprivate var retainedBytes: Int { (recording?.json?.count ?? 0) + calls.count * InspectedVersions.callBytes }
    }

    private let since: Int64
    private let streams: [String]
    private(set) var versions: [Version] = []
    /// Snapshots from which the recorded versions can be computed: one before the oldest recorded version, and some later ones.
    private var snapshots: [(stream: String, number: UInt64, json: [UInt8])] = []
    private var retainedBytes = 0
    private var hasGap = false
    /// The number of versions since the last recorded snapshot, by stream.
    private var versionsSinceSnapshot: [String: Int] = [:]
    /// Streams whose snapshot was requested.
    private var requestedSnapshots: Set<String> = []
    /// The newest version by stream, if all versions before it were recorded.
    private var newest: [String: UInt64] = [:]
    /// The time since when each stream is observed.
    private var observedSince: [String: Int64] = [:]
    /// The time since when no version was removed.
    private var completeSince: Int64 = 0
    /// Connections that accept no data, with the version sent to them last, by stream.
    private(set) var blockedConnections: [String: [UInt64: UInt64]] = [:]
    /// The versions that were shown last, by stream.
    private var lastInspectedVersions: [String: UInt64] = [:]

    init(_ streams: [String], since: Int64) {
        self.streams = streams
        self.since = since
    }

    mutating func addVersion(_ version: ServerEvent.Version, calls: [RecentCallBuffer.Entry]) {
        let previous = newest.updateValue(version.number, forKey: version.stream.target)
        versions.append(
            Version(
                stream: version.stream.target, number: version.number, time: WallTime.milliseconds,
                bytes: version.bytes, calls: calls, moreCalls: version.unnamedCallCount, previous: previous))
        // Other causes than the listed calls contributed to the version, or may have.
        if hasGap || version.hasOtherCauses && !calls.isEmpty { versions[versions.count - 1].isPartial = true }
        hasGap = false
        retainedBytes += calls.count * Self.callBytes
        versionsSinceSnapshot[version.stream.target, default: 0] += 1
        enforceLimits()
    }

    /// Marks a gap: the following events are not recorded.
    mutating func markGap() {
        hasGap = true
        // The connections that are behind are unknown after the gap, too.
        (newest, observedSince, blockedConnections) = ([:], [:], [:])
        if !versions.isEmpty { versions[versions.count - 1].isPartial = true }
    }

    private mutating func enforceLimits() {
        while versions.count > Self.versionLimit + Self.trimThreshold
            || retainedBytes > Self.maximumBytes && versions.count > 1
        {
            let removed = versions.removeFirst()
            retainedBytes -= removed.retainedBytes
            completeSince = removed.time + 1
        }
        // Remove snapshots that no recorded version is based on.
        while let index = snapshots.firstIndex(where: { isSpare($0.stream, $0.number) }) { removeSnapshot(at: index) }
        while retainedBytes > Self.maximumBytes, !snapshots.isEmpty { removeSnapshot(at: 0) }
    }

    private mutating func removeSnapshot(at index: Int) { retainedBytes -= snapshots.remove(at: index).json.count }

    private func isSpare(_ stream: String, _ number: UInt64) -> Bool {
        guard let oldest = versions.first(where: { $0.stream == stream }) else { return false }
        return number < oldest.baseNumber
    }

    /// Returns whether a value differs from the one that was inspected before.
    mutating func differs(_ recording: InspectorStateSubscription.SentVersion, of stream: String) -> Bool {
        lastInspectedVersions.updateValue(recording.number, forKey: stream) != recording.number
    }

    /// Records a snapshot if it is far enough behind the previous one.
    mutating func recordSnapshot(_ recording: InspectorStateSubscription.SentVersion, of stream: String) {
        guard recording.base == nil else { return }
        requestedSnapshots.remove(stream)
        guard let json = recording.json else { return }
        let last = snapshots.last { $0.stream == stream }?.number
        if let last {
            guard versionsSinceSnapshot[stream, default: 0] >= Self.snapshotInterval, last < recording.number else {
                return
            }
        }
        versionsSinceSnapshot[stream] = 0
        snapshots.append((stream, recording.number, json))
        retainedBytes += json.count
        enforceLimits()
    }

    /// Returns the time since when `shown` contains all versions of its states, in milliseconds since 1970; nil while its
    /// states are not observed.
    ///
    /// - Parameter shown: some of the recorded versions, in their order.
    func completeSince(showing shown: [Version]) -> Int64? {
        let times = streams.compactMap { observedSince[$0] }
        guard times.count == streams.count else { return nil }
        var (rest, hidden) = (shown[...], Int64(0))
        for version in versions {
            if let next = rest.first, next.number == version.number, next.stream == version.stream {
                rest.removeFirst()
            } else {
                hidden = version.time + 1
            }
        }
        return max(times.max() ?? since, completeSince, hidden)
    }

    /// Returns a snapshot and the patches from it to the base of a version; nil if the base is unknown.
    func chain(before version: Version) -> StateHistory? {
        guard var number = version.recording?.base ?? version.previous else { return nil }
        var patches: [[UInt8]] = []
        let target = number
        func history(_ value: [UInt8]) -> StateHistory {
            StateHistory(stream: version.stream, number: target, value: value, patches: patches.reversed())
        }
        var rest = versions[...]
        while true {
            if let whole = snapshots.last(where: { $0.stream == version.stream && $0.number == number }) {
                return history(whole.json)
            }
            guard let index = rest.lastIndex(where: { $0.number == number && $0.stream == version.stream }),
                let recording = versions[index].recording, let json = recording.json
            else { return nil }
            guard let base = recording.base else { return history(json) }
            patches.append(json)
            number = base
            rest = versions[..<index]
        }
    }

    /// Returns the numbers of the versions of a stream whose values can be computed.
    private func known(of stream: String) -> Set<UInt64> {
        var known = Set(snapshots.filter { $0.stream == stream }.map(\.number))
        for version in versions where version.stream == stream {
            guard let recording = version.recording, recording.json != nil else { continue }
            if recording.base.map({ known.contains($0) }) ?? true { known.insert(version.number) }
        }
        return known
    }

    /// Returns, for each stream, the chain that yields the base of its oldest shown version. Removes shown versions without a
    /// known base if later versions have one.
    func chains(before shown: inout [Version]) -> [StateHistory] {
        streams.compactMap { stream in
            let known = known(of: stream)
            let first = shown.first { version in
                version.stream == stream
                    && (version.recording?.base ?? version.previous).map { known.contains($0) } == true
            }
            guard let first, let chain = chain(before: first) else {
                // No version has a known base, or the values are too long.
                return snapshots.last { $0.stream == stream }.map {
                    StateHistory(stream: stream, number: $0.number, value: $0.json, patches: [])
                }
            }
            shown.removeAll { $0.stream == stream && $0.number < first.number }
            return chain
        }
    }

    /// Records a value that was computed from an earlier snapshot, and removes earlier snapshots, since no shown version is
    /// based on them.
    mutating func recordComputedValue(_ value: [UInt8], _ number: UInt64, of stream: String) {
        for index in snapshots.indices.reversed()
        where snapshots[index].stream == stream && snapshots[index].number <= number {
            removeSnapshot(at: index)
        }
        snapshots.insert((stream, number, value), at: 0)
        retainedBytes += value.count
        enforceLimits()
    }

    /// Search backwards: events about a version follow soon after it.
    private func index(of stream: String, _ number: UInt64) -> Int? {
        versions.lastIndex { $0.number == number && $0.stream == stream }
    }

    /// - Returns: whether a snapshot must be requested, since otherwise later versions would have no recorded base.
    mutating func recordUpdate(_ recording: InspectorStateSubscription.SentVersion, of stream: String) -> Bool {
        if observedSince[stream] == nil {
            observedSince[stream] = WallTime.milliseconds + 1
            newest[stream] = max(newest[stream] ?? 0, recording.number)
        }
        recordSnapshot(recording, of: stream)
        defer { recordValue(recording, of: stream) }
        guard recording.base != nil, versionsSinceSnapshot[stream, default: 0] >= Self.snapshotInterval else {
            return false
        }
        return requestedSnapshots.insert(stream).inserted
    }

    private mutating func recordValue(_ recording: InspectorStateSubscription.SentVersion, of stream: String) {
        guard let index = index(of: stream, recording.number), versions[index].recording == nil else { return }
        versions[index].recording = recording
        retainedBytes += recording.json?.count ?? 0
        enforceLimits()
    }

    mutating func count(_ delivery: ServerEvent.Delivery) {
        if !blockedConnections.isEmpty { blockedConnections[delivery.stream.target]?[delivery.connection] = nil }
        guard let index = index(of: delivery.stream.target, delivery.number) else { return }
        switch delivery.form {
        case .patch: versions[index].patches += 1
        case .snapshot: versions[index].snapshots += 1
        case .event: versions[index].events += 1
        }
    }

    /// Records that a connection accepts no data and that `number` was sent to it last.
    mutating func recordBlocked(_ stream: String, _ connection: UInt64, at number: UInt64) {
        let isKnown = blockedConnections[stream]?[connection] != nil
        guard isKnown || blockedConnections[stream, default: [:]].count < Self.maximumLag else { return }
        blockedConnections[stream, default: [:]][connection] = number
    }

    /// Records that a connection's stream ended: it skips all versions that it has not received.
    mutating func countEnd(_ stream: String, of connection: UInt64) {
        guard let number = blockedConnections[stream]?.removeValue(forKey: connection) else { return }
        countSkipped(stream, by: connection, number, .max)
    }

    /// Records that a connection at version `from` receives `to` and skips the versions between them.
    mutating func countSkipped(_ stream: String, by connection: UInt64, _ from: UInt64, _ to: UInt64) {
        for index in versions.indices.reversed() where versions[index].stream == stream {
            guard versions[index].number > from else { return }
            guard versions[index].number < to else { continue }
            versions[index].skipped += 1
            if versions[index].skippers.count < Self.maximumSkippers { versions[index].skippers.append(connection) }
        }
    }
}

extension InspectedVersions.Version {
    /// - Parameter known: the recorded calls; most causes have ended since they produced the version.
    /// - Parameter behind: connections that accept no data, with the version sent to them last.
    func json(_ known: RecentCallBuffer, behind: [UInt64: UInt64]?) -> InspectorJSON {
        let waiting = (behind ?? [:]).filter { $0.value < number }.keys.sorted()
        let causes = calls.map { cause in
            let now = known[cause.number]
            return now.call == nil ? cause.json : now.json
        }
        var members: [(String, InspectorJSON)] = [
            ("stream", .text(stream)), ("version", .count(number)), ("time", .integer(time)),
            ("bytes", .count(bytes)), ("calls", .list(causes)), ("moreCalls", .count(moreCalls)),
            (
                "delivered",
                .object([
                    ("patch", .count(patches)), ("whole", .count(snapshots)),
                    ("event", .count(events)),
                ])
            ), ("skipped", .count(skipped)), ("skippedBy", .list(skippers.map { .count($0) })),
            ("behind", .count(waiting.count)),
            ("behindBy", .list(waiting.prefix(InspectedVersions.maximumSkippers).map { .count($0) })),
            ("previous", previous.map { .count($0) } ?? .null),
            ("partial", .flag(isPartial)),
        ]
        if let recording {
            if let base = recording.base { members.append(("base", .count(base))) }
            members.append((recording.base == nil ? "value" : "patch", recording.json.map { .encoded($0) } ?? .null))
        }
        return .object(members)
    }
}
