/// A queue of documents by the time of their expiry. Pure.
///
/// It is a heap in which outdated entries stay until they reach the front, or until most entries are outdated. So neither an
/// insertion nor a lookup scans all documents.
struct ExpiryQueue: Sendable {
    private struct Entry: Sendable {
        let time: Int
        let id: DocumentID
    }

    private var heap: [Entry] = []
    /// The current expiry of each document.
    private var times: [DocumentID: Int] = [:]

    /// The number of documents with an expiry.
    var count: Int { times.count }

    init(_ documents: some Sequence<Document>) {
        for document in documents { if let time = document.expiryMilliseconds { times[document.id] = time } }
        rebuild()
    }

    /// Sets the expiry of a document; nil for none.
    mutating func set(_ time: Int?, for id: DocumentID) {
        guard time != nil || !times.isEmpty, times[id] != time else { return }
        times[id] = time
        if heap.count > 2 * times.count + 64 { return rebuild() }
        guard let time else { return }
        heap.append(Entry(time: time, id: id))
        siftUp(from: heap.count - 1)
    }

    /// Returns the time of the next expiry.
    mutating func next() -> Int? {
        while let first = heap.first {
            if times[first.id] == first.time { return first.time }
            removeFirst()
        }
        return nil
    }

    /// Removes and returns a document that has expired.
    mutating func removeExpired(at now: Int) -> DocumentID? {
        guard let time = next(), time <= now else { return nil }
        let id = heap[0].id
        times[id] = nil
        removeFirst()
        return id
    }

    private mutating func rebuild() {
        heap = times.map { Entry(time: $0.value, id: $0.key) }
        // From the last entry with children: linear in the number of entries.
        for place in (0..<heap.count / 2).reversed() { siftDown(from: place) }
    }

    private mutating func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        siftDown(from: 0)
    }

    private mutating func siftDown(from start: Int) {
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

    private mutating func siftUp(from start: Int) {
        var place = start
        while place > 0, heap[place].time < heap[(place - 1) / 2].time {
            heap.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }
}
