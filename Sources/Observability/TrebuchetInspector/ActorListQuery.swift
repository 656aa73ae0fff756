internal import Trebuchet
internal import TrebuchetActors

/// The query for a list of actors: `?type=Demo.List&search=lists/&page=2&size=100`.
struct ActorListQuery {
    let page: ListPage
    /// The full name of a type, or its name without the module.
    let type: String?
    /// A substring of actor names, compared by bytes.
    let search: [UInt8]?

    init(_ query: InspectorQuery) throws(InspectorQuery.InvalidQuery) {
        page = try ListPage(query)
        type = query.text("type")
        search = query.text("search").map { Array($0.utf8) }
    }

    func matches(type name: String) -> Bool {
        guard let type else { return true }
        return name == type || name.utf8.count > type.utf8.count && name.hasSuffix("." + type)
    }

    func matches(name: String) -> Bool {
        guard let search, let first = search.first else { return true }
        var name = name
        return name.withUTF8 { bytes in
            guard bytes.count >= search.count else { return false }
            return (0...bytes.count - search.count).contains { start in
                bytes[start] == first && bytes[start..<start + search.count].elementsEqual(search)
            }
        }
    }
}

/// Selects the elements with the smallest names from many, without sorting all of them.
struct SmallestNames<Element> {
    private let most: Int
    private var selected: [(name: String, element: Element)] = []
    /// The largest name that may still be selected.
    private var last: String?
    private(set) var count = 0

    init(_ most: Int) { self.most = most }

    mutating func insert(_ name: String, _ element: Element) {
        count += 1
        if let last, name >= last { return }
        selected.append((name, element))
        if selected.count >= max(2 * most, 1_000) { truncate() }
    }

    private mutating func truncate() {
        selected.sort { $0.name < $1.name }
        guard selected.count > most else { return }
        selected.removeLast(selected.count - most)
        last = selected.last?.name
    }

    /// Returns the selected elements in the order of their names.
    mutating func removeAll() -> [Element] {
        truncate()
        return selected.map(\.element)
    }
}

extension ServerView {
    func inspectedActors(_ query: ActorListQuery) -> InspectorJSON {
        let (ready, unloaded, patterns) = actors
        var types: [ObjectIdentifier: (type: ActorType, actors: Int, isTaken: Bool)] = [:]
        func isTaken(_ type: ActorType) -> Bool {
            let isTaken = types[ObjectIdentifier(type)]?.isTaken ?? query.matches(type: type.name)
            types[ObjectIdentifier(type), default: (type, 0, isTaken)].actors += 1
            return isTaken
        }
        var first = SmallestNames<(name: String, type: ActorType, record: ActorRecord?)>(query.page.end)
        for record in ready where isTaken(record.type) && query.matches(name: record.name) {
            first.insert(record.name, (record.name, record.type, record))
        }
        for (name, type) in unloaded where isTaken(type) && query.matches(name: name) {
            first.insert(name, (name, type, nil))
        }
        let found = first.count
        let shown = query.page.of(first.removeAll()).map { name, type, record in
            InspectorJSON.object([
                ("name", .text(name)), ("type", .text(type.name)), ("ready", .flag(record != nil)),
                ("onDemand", .flag(record?.reservation != nil)), ("clustered", .flag(record?.isClustered == true)),
                ("reactor", .text(record.flatMap { reactorName(of: $0) })),
            ])
        }
        return .object(
            query.page.head(found: found) + [
                ("all", .count(ready.count + unloaded.count)),
                (
                    "types",
                    .list(
                        types.values.sorted { $0.type.name < $1.type.name }.map {
                            .object([("type", .text($0.type.name)), ("actors", .count($0.actors))])
                        })
                ),
                (
                    "patterns",
                    .list(
                        patterns.map { .object([("names", .text($0.prefix + "*")), ("type", .text($0.type.name))]) })
                ),
                ("actors", .list(shown)),
            ])
    }
}
