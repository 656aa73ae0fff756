internal import Synchronization
internal import Transports
internal import TrebuchetActors

/// An actor that is looked at, with its versions since then. All but `leave` under the recorder's lock.
///
/// `@unchecked Sendable`: constant, or guarded by that lock, but for the watches, which have their own.
final class InspectedActor: @unchecked Sendable {
    /// Versions that are kept, of all its streams together.
    static let room = 200
    /// Connections that skipped a version, of each as many as are named.
    fileprivate static let mostSkippers = 20
    /// Of what they were sent as, and of the calls that made them, all together, in bytes.
    private static let mostBytes = 4 << 20
    /// About what is kept of a call.
    private static let callBytes = 200
    /// Versions between two whole values that are kept.
    private static let wholeDistance = 25
    /// Versions that are kept before those that are shown, so that what the oldest of these follows from can be made of a whole value.
    private static let spare = 2 * wholeDistance
    /// Connections that are known to be behind, of each stream.
    private static let mostBehind = 1_000

    struct Version {
        let stream: String
        let number: UInt64
        let time: Int64
        let bytes: Int
        let calls: [CallRing.Entry]
        let moreCalls: Int
        /// The version before it; nil when that is not known.
        let previous: UInt64?
        var taken: StateWatch.Taken?
        var patches = 0
        var wholes = 0
        var events = 0
        var skipped = 0
        /// The connections that did, the first of them.
        var skippers: [UInt64] = []
        /// Whether there was too much to note: it may have been made by others too, and there may be versions before it.
        var isPartial = false

        /// The version that it follows from, as far as it is known.
        fileprivate var beginning: UInt64 { taken.map { $0.base ?? previous ?? number } ?? 0 }

        fileprivate var heldBytes: Int { (taken?.json?.count ?? 0) + calls.count * InspectedActor.callBytes }
    }

    let name: String
    /// Keeps the record's place in memory from becoming another one's, and is not looked at. A weak reference would make each call of the
    /// actor slower, from then on for ever.
    private unowned let place: ActorRecord
    private let identity: ObjectIdentifier
    let since = WallTime.milliseconds
    var looked: UInt64
    private(set) var versions: [Version] = []
    /// Whole values, so that those of the versions behind them follow: the one before the oldest version that is kept, and some later ones.
    private var wholes: [(stream: String, number: UInt64, json: [UInt8])] = []
    private var heldBytes = 0
    private var hasGap = false
    /// Versions since the last whole value that is kept, by their streams.
    private var sinceWhole: [String: Int] = [:]
    /// Streams of which a whole value was asked for.
    private var asked: Set<String> = []
    /// The newest versions, by their streams, as far as all before them were noted.
    private var newest: [String: UInt64] = [:]
    /// Since when each stream is followed.
    private var followedSince: [String: Int64] = [:]
    /// Since when no version was let go.
    private var keptSince: Int64 = 0
    /// Connections that take nothing, with what they were sent last, by streams.
    private(set) var behind: [String: [UInt64: UInt64]] = [:]
    /// The versions that were shown last, by their streams.
    private var lastLooked: [String: UInt64] = [:]
    private let watches = Mutex<(list: [StateWatch], isOver: Bool)>(([], false))

    private let streams: [String]
    private let follow: @Sendable (InspectedActor, String) -> Void

    /// - Parameter follow: has a watch follow one of its states.
    init(
        _ record: ActorRecord, looked: UInt64, follow: @escaping @Sendable (InspectedActor, String) -> Void
    ) {
        streams = record.type.description.states
        self.follow = follow
        name = record.name
        place = record
        identity = ObjectIdentifier(record)
        self.looked = looked
    }

    deinit { leave() }

    func isOf(_ record: ActorRecord) -> Bool { identity == ObjectIdentifier(record) }

    func add(_ watch: StateWatch) {
        let isOver = watches.withLock { watches in
            if !watches.isOver { watches.list.append(watch) }
            return watches.isOver
        }
        if isOver { watch.leave() }
    }

    /// Follows its states, unless it does. From anywhere.
    func goOn() {
        guard watches.withLock({ $0.list.isEmpty && !$0.isOver }) else { return }
        for stream in streams { follow(self, stream) }
    }

    /// Nobody looks any more, or not until `goOn`: its states are followed no more, and nothing is made for that. From anywhere.
    func leave(forGood: Bool = true) {
        let list = watches.withLock { watches in
            defer { watches = ([], watches.isOver || forGood) }
            return watches.list
        }
        for watch in list { watch.leave() }
    }

    // MARK: What happens

    func add(_ version: ServerEvent.Version, calls: [CallRing.Entry]) {
        let previous = newest.updateValue(version.number, forKey: version.stream.target)
        versions.append(
            Version(
                stream: version.stream.target, number: version.number, time: WallTime.milliseconds,
                bytes: version.bytes, calls: calls, moreCalls: version.moreCalls, previous: previous))
        // Somebody else than the calls that are named has a part in it, or may have.
        if hasGap || version.hasOtherCauses && !calls.isEmpty { versions[versions.count - 1].isPartial = true }
        hasGap = false
        heldBytes += calls.count * Self.callBytes
        sinceWhole[version.stream.target, default: 0] += 1
        keepToLimits()
    }

    /// What happens next is not noted.
    func leaveGap() {
        hasGap = true
        // Nor whether anybody is behind still.
        (newest, followedSince, behind) = ([:], [:], [:])
        if !versions.isEmpty { versions[versions.count - 1].isPartial = true }
    }

    private func keepToLimits() {
        while versions.count > Self.room + Self.spare || heldBytes > Self.mostBytes && versions.count > 1 {
            let gone = versions.removeFirst()
            heldBytes -= gone.heldBytes
            keptSince = gone.time + 1
        }
        // No version that is kept follows from these.
        while let place = wholes.firstIndex(where: { isSpare($0.stream, $0.number) }) { dropWhole(place) }
        while heldBytes > Self.mostBytes, !wholes.isEmpty { dropWhole(0) }
    }

    private func dropWhole(_ place: Int) { heldBytes -= wholes.remove(at: place).json.count }

    private func isSpare(_ stream: String, _ number: UInt64) -> Bool {
        guard let oldest = versions.first(where: { $0.stream == stream }) else { return false }
        return number < oldest.beginning
    }

    /// Whether a value is another one than that which was looked at before.
    func looksAnew(at taken: StateWatch.Taken, of stream: String) -> Bool {
        lastLooked.updateValue(taken.number, forKey: stream) != taken.number
    }

    /// A whole value that was seen. Not each is kept, only what is far enough behind the one before.
    func note(whole taken: StateWatch.Taken, of stream: String) {
        guard taken.base == nil else { return }
        asked.remove(stream)
        guard let json = taken.json else { return }
        let last = wholes.last { $0.stream == stream }?.number
        if let last {
            guard sinceWhole[stream, default: 0] >= Self.wholeDistance, last < taken.number else { return }
        }
        sinceWhole[stream] = 0
        wholes.append((stream, taken.number, json))
        heldBytes += json.count
        keepToLimits()
    }

    /// Since when all versions of its states are among these, in milliseconds since 1970; nil while its states are not followed.
    ///
    /// - Parameter shown: some of those that are kept, in their order.
    func followed(showing shown: [Version]) -> Int64? {
        let times = streams.compactMap { followedSince[$0] }
        guard times.count == streams.count else { return nil }
        var (rest, hidden) = (shown[...], Int64(0))
        for version in versions {
            if let next = rest.first, next.number == version.number, next.stream == version.stream {
                rest.removeFirst()
            } else {
                hidden = version.time + 1
            }
        }
        return max(times.max() ?? since, keptSince, hidden)
    }

    /// A whole value, and what leads on from it to that which a version follows from; nil when that is not known.
    func chain(before version: Version) -> StateChain? {
        guard var number = version.taken?.base ?? version.previous else { return nil }
        var patches: [[UInt8]] = []
        let target = number
        func made(_ value: [UInt8]) -> StateChain {
            StateChain(stream: version.stream, number: target, value: value, patches: patches.reversed())
        }
        var rest = versions[...]
        while true {
            if let whole = wholes.last(where: { $0.stream == version.stream && $0.number == number }) {
                return made(whole.json)
            }
            guard let place = rest.lastIndex(where: { $0.number == number && $0.stream == version.stream }),
                let taken = versions[place].taken, let json = taken.json
            else { return nil }
            guard let base = taken.base else { return made(json) }
            patches.append(json)
            number = base
            rest = versions[..<place]
        }
    }

    /// The versions of a stream whose values can be made, by their numbers.
    private func known(of stream: String) -> Set<UInt64> {
        var known = Set(wholes.filter { $0.stream == stream }.map(\.number))
        for version in versions where version.stream == stream {
            guard let taken = version.taken, taken.json != nil else { continue }
            if taken.base.map({ known.contains($0) }) ?? true { known.insert(version.number) }
        }
        return known
    }

    /// Of each stream how the value is made that the oldest version of it which is shown follows from. Versions that follow from nothing which is known
    /// are not shown where later ones do.
    func chains(before shown: inout [Version]) -> [StateChain] {
        streams.compactMap { stream in
            let known = known(of: stream)
            let first = shown.first { version in
                version.stream == stream && (version.taken?.base ?? version.previous).map { known.contains($0) } == true
            }
            guard let first, let chain = chain(before: first) else {
                // There are none, or their values are too long.
                return wholes.last { $0.stream == stream }.map {
                    StateChain(stream: stream, number: $0.number, value: $0.json, patches: [])
                }
            }
            shown.removeAll { $0.stream == stream && $0.number < first.number }
            return chain
        }
    }

    /// A value that was made of one before it, which nothing that is shown follows from any more.
    func note(made value: [UInt8], _ number: UInt64, of stream: String) {
        for place in wholes.indices.reversed() where wholes[place].stream == stream && wholes[place].number <= number {
            dropWhole(place)
        }
        wholes.insert((stream, number, value), at: 0)
        heldBytes += value.count
        keepToLimits()
    }

    /// The newest come last, and what happens to them follows soon.
    private func place(of stream: String, _ number: UInt64) -> Int? {
        versions.lastIndex { $0.number == number && $0.stream == stream }
    }

    /// - Returns: whether a whole value is to be asked for: without it, later ones would follow from nothing that is kept.
    func note(_ taken: StateWatch.Taken, of stream: String) -> Bool {
        if followedSince[stream] == nil {
            followedSince[stream] = WallTime.milliseconds + 1
            newest[stream] = max(newest[stream] ?? 0, taken.number)
        }
        note(whole: taken, of: stream)
        defer { noteValue(taken, of: stream) }
        guard taken.base != nil, sinceWhole[stream, default: 0] >= Self.wholeDistance else { return false }
        return asked.insert(stream).inserted
    }

    private func noteValue(_ taken: StateWatch.Taken, of stream: String) {
        guard let place = place(of: stream, taken.number), versions[place].taken == nil else { return }
        versions[place].taken = taken
        heldBytes += taken.json?.count ?? 0
        keepToLimits()
    }

    func count(_ delivery: ServerEvent.Delivery) {
        if !behind.isEmpty { behind[delivery.stream.target]?[delivery.connection] = nil }
        guard let place = place(of: delivery.stream.target, delivery.number) else { return }
        switch delivery.form {
        case .patch: versions[place].patches += 1
        case .whole: versions[place].wholes += 1
        case .event: versions[place].events += 1
        }
    }

    /// A connection takes nothing, and was sent `number` last.
    func countBehind(_ stream: String, _ connection: UInt64, at number: UInt64) {
        let isKnown = behind[stream]?[connection] != nil
        guard isKnown || behind[stream, default: [:]].count < Self.mostBehind else { return }
        behind[stream, default: [:]][connection] = number
    }

    /// A connection gets no more: what it has not got yet it never does.
    func countEnd(_ stream: String, of connection: UInt64) {
        guard let number = behind[stream]?.removeValue(forKey: connection) else { return }
        countSkipped(stream, by: connection, number, .max)
    }

    /// A connection that is behind `from` gets `to`, and none of those between.
    func countSkipped(_ stream: String, by connection: UInt64, _ from: UInt64, _ to: UInt64) {
        for place in versions.indices.reversed() where versions[place].stream == stream {
            guard versions[place].number > from else { return }
            guard versions[place].number < to else { continue }
            versions[place].skipped += 1
            if versions[place].skippers.count < Self.mostSkippers { versions[place].skippers.append(connection) }
        }
    }

}

extension InspectedActor.Version {
    /// - Parameter known: calls, most of which have ended since they made it.
    /// - Parameter behind: connections that take nothing, with what they were sent last.
    func json(_ known: CallRing, behind: [UInt64: UInt64]?) -> InspectorJSON {
        let waiting = (behind ?? [:]).filter { $0.value < number }.keys.sorted()
        let causes = calls.map { cause in
            let now = known[cause.number]
            return now.call == nil ? cause.json : now.json
        }
        var members: [(String, InspectorJSON)] = [
            ("stream", .text(stream)), ("version", .count(number)), ("time", .whole(time)),
            ("bytes", .count(bytes)), ("calls", .list(causes)), ("moreCalls", .count(moreCalls)),
            (
                "delivered",
                .object([
                    ("patch", .count(patches)), ("whole", .count(wholes)),
                    ("event", .count(events)),
                ])
            ), ("skipped", .count(skipped)), ("skippedBy", .list(skippers.map { .count($0) })),
            ("behind", .count(waiting.count)),
            ("behindBy", .list(waiting.prefix(InspectedActor.mostSkippers).map { .count($0) })),
            ("previous", previous.map { .count($0) } ?? .null),
            ("partial", .flag(isPartial)),
        ]
        if let taken {
            if let base = taken.base { members.append(("base", .count(base))) }
            members.append((taken.base == nil ? "value" : "patch", taken.json.map { .written($0) } ?? .null))
        }
        return .object(members)
    }
}
