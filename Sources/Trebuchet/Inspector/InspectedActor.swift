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
    private static let mostSkippers = 20
    /// Of what they were sent as, and of the calls that made them, all together, in bytes.
    private static let mostBytes = 4 << 20
    /// About what is kept of a call.
    private static let callBytes = 200
    /// Versions between two whole values that are kept.
    private static let wholeDistance = 25

    struct Version {
        let stream: String
        let number: UInt64
        let time: Int64
        let bytes: Int
        let calls: [CallRing.Entry]
        let moreCalls: Int
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
        fileprivate var beginning: UInt64 { taken.map { $0.base ?? number } ?? 0 }

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
        versions.append(
            Version(
                stream: version.stream.target, number: version.number, time: WallTime.milliseconds,
                bytes: version.bytes, calls: calls, moreCalls: version.moreCalls))
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
        if !versions.isEmpty { versions[versions.count - 1].isPartial = true }
    }

    private func keepToLimits() {
        while versions.count > Self.room || heldBytes > Self.mostBytes && versions.count > 1 {
            heldBytes -= versions.removeFirst().heldBytes
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
        guard taken.base == nil, let json = taken.json else { return }
        let last = wholes.last { $0.stream == stream }?.number
        guard last == nil || sinceWhole[stream, default: 0] >= Self.wholeDistance, last != taken.number else { return }
        sinceWhole[stream] = 0
        wholes.append((stream, taken.number, json))
        heldBytes += json.count
        keepToLimits()
    }

    /// Of each stream the first whole value that versions which are shown follow from, as far as there is one.
    func earlier(than shown: [Version]) -> InspectorJSON {
        let list = Set(wholes.map(\.stream)).sorted().compactMap { stream -> InspectorJSON? in
            let beginning = shown.first { $0.stream == stream }?.beginning ?? 0
            guard let found = wholes.first(where: { $0.stream == stream && $0.number >= beginning }) else { return nil }
            return .object([
                ("stream", .text(stream)), ("version", .count(found.number)), ("value", .written(found.json)),
            ])
        }
        return .list(list)
    }

    /// The newest come last, and what happens to them follows soon.
    private func place(of stream: String, _ number: UInt64) -> Int? {
        versions.lastIndex { $0.number == number && $0.stream == stream }
    }

    func note(_ taken: StateWatch.Taken, of stream: String) {
        note(whole: taken, of: stream)
        guard let place = place(of: stream, taken.number), versions[place].taken == nil else { return }
        versions[place].taken = taken
        heldBytes += taken.json?.count ?? 0
        keepToLimits()
    }

    func count(_ delivery: ServerEvent.Delivery) {
        guard let place = place(of: delivery.stream.target, delivery.number) else { return }
        switch delivery.form {
        case .patch: versions[place].patches += 1
        case .whole: versions[place].wholes += 1
        case .event: versions[place].events += 1
        }
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
    func json(_ known: CallRing) -> InspectorJSON {
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
            ("partial", .flag(isPartial)),
        ]
        if let taken {
            if let base = taken.base { members.append(("base", .count(base))) }
            members.append((taken.base == nil ? "value" : "patch", taken.json.map { .written($0) } ?? .null))
        }
        return .object(members)
    }
}
