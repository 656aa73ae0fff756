/// When documents expire, the first first. Pure.
///
/// A heap in which what is not true any more stays until it comes to the front, or until most of it is like that: so neither noting
/// nor finding looks at all documents.
struct ExpiryQueue: Sendable {
    private struct Entry: Sendable {
        let time: Int
        let id: DocumentID
    }

    private var heap: [Entry] = []
    /// When each document expires in truth.
    private var times: [DocumentID: Int] = [:]

    /// How many documents expire some time.
    var count: Int { times.count }

    init(_ documents: some Sequence<Document>) {
        for document in documents { if let time = document.expiresAt { times[document.id] = time } }
        rebuild()
    }

    /// Notes when a document expires; nil for never.
    mutating func set(_ time: Int?, for id: DocumentID) {
        guard times[id] != time else { return }
        times[id] = time
        if heap.count > 2 * times.count + 64 { return rebuild() }
        guard let time else { return }
        heap.append(Entry(time: time, id: id))
        rise(from: heap.count - 1)
    }

    /// When the next one expires.
    mutating func next() -> Int? {
        while let first = heap.first {
            if times[first.id] == first.time { return first.time }
            removeFirst()
        }
        return nil
    }

    /// Takes out one that has expired.
    mutating func take(at now: Int) -> DocumentID? {
        guard let time = next(), time <= now else { return nil }
        let id = heap[0].id
        times[id] = nil
        removeFirst()
        return id
    }

    private mutating func rebuild() {
        heap = times.map { Entry(time: $0.value, id: $0.key) }
        // From the last that has others below it: in proportion to their number.
        for place in (0..<heap.count / 2).reversed() { sink(from: place) }
    }

    private mutating func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        sink(from: 0)
    }

    private mutating func sink(from start: Int) {
        var place = start
        while true {
            let (left, right) = (2 * place + 1, 2 * place + 2)
            var least = place
            if left < heap.count, heap[left].time < heap[least].time { least = left }
            if right < heap.count, heap[right].time < heap[least].time { least = right }
            guard least != place else { return }
            heap.swapAt(place, least)
            place = least
        }
    }

    private mutating func rise(from start: Int) {
        var place = start
        while place > 0, heap[place].time < heap[(place - 1) / 2].time {
            heap.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }
}
