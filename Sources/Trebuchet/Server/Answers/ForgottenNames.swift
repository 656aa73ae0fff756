internal import Platform
internal import TrebuchetActors

/// Connections of other nodes whose calls have run here, and of which nothing is kept any more: a late repeat of one of these
/// may have run. Pure.
///
/// So many of each party are known by name. Beyond them a party has but the greatest number for each node: its connections there up to
/// that one may have been among them. So memory is bounded, no call runs twice, and nobody makes others' names be forgotten.
struct ForgottenNames {
    struct Limits {
        var all = 100_000
        var perParty = 10_000
        /// Greatest numbers.
        var numbers = 10_000
    }

    private struct Entry {
        var call: UInt64
        let party: Party
    }

    private struct Place: Hashable {
        let party: Party
        let instance: UInt64
    }

    private let limits: Limits
    private var entries: [SessionName: Entry] = [:]
    /// In the order in which they came; some of them are not there any more.
    private var order = WorkQueue<SessionName>()
    private var parties: [Party: WorkQueue<SessionName>] = [:]
    private var numbers: [Place: UInt64] = [:]
    private var places = WorkQueue<Place>()

    init(_ limits: Limits = Limits()) { self.limits = limits }

    var count: Int { entries.count }

    func contains(_ call: UInt64, over session: SessionName, of party: Party) -> Bool {
        if let entry = entries[session] { return call <= entry.call }
        return numbers[Place(party: party, instance: session.instance)].map { session.number <= $0 } ?? false
    }

    /// - Parameter call: the greatest that may have run.
    mutating func add(_ session: SessionName, upTo call: UInt64, of party: Party) {
        if let entry = entries[session] {
            entries[session]?.call = max(entry.call, call)
            return
        }
        if let own = parties[party]?.count, own >= limits.perParty { removeFirst(of: party) }
        if entries.count >= limits.all { removeFirst() }
        entries[session] = Entry(call: call, party: party)
        order.append(session)
        parties[party, default: WorkQueue()].append(session)
        if order.count > 2 * limits.all { sweep() }
    }

    private mutating func removeFirst() {
        while !order.isEmpty {
            // The oldest of all is the oldest of its party.
            if let entry = entries[order.removeFirst()] { return removeFirst(of: entry.party) }
        }
    }

    private mutating func removeFirst(of party: Party) {
        guard let session = parties[party]?.removeFirst() else { return }
        if parties[party]?.isEmpty == true { parties[party] = nil }
        entries[session] = nil
        let place = Place(party: party, instance: session.instance)
        if numbers[place] == nil {
            if numbers.count >= limits.numbers { numbers[places.removeFirst()] = nil }
            places.append(place)
        }
        numbers[place] = max(numbers[place] ?? 0, session.number)
    }

    private mutating func sweep() {
        var rest = WorkQueue<SessionName>()
        while !order.isEmpty {
            let session = order.removeFirst()
            if entries[session] != nil { rest.append(session) }
        }
        order = rest
    }
}
