/// A hash table of document ids, without the ids: it has the places of documents in an array, four bytes each. Pure.
///
/// Clients choose ids, so the hashes have random keys.
struct DocumentIndex: Sendable {
    /// Open addressing with linear probing. A bucket has a place plus one in its lower bits and a part of the hash in the others;
    /// an empty one is zero. Their number is a power of two, or zero. At most half of them are used, so the lower bits suffice.
    private var buckets: [UInt32] = []
    private(set) var count = 0

    /// Creates an empty index with room for a number of documents.
    init(capacity: Int = 0) {
        if capacity > 0 { buckets = Array(repeating: 0, count: Self.bucketCount(for: capacity)) }
    }

    static func hash(_ id: UnsafeRawBufferPointer) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: id)
        return hasher.finalize()
    }

    static func hash(_ id: DocumentID) -> Int {
        var text = id.text
        return text.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
    }

    private var mask: Int { buckets.count - 1 }
    private func first(_ hash: Int) -> Int { hash & mask }
    private func next(_ bucket: Int) -> Int { (bucket + 1) & mask }

    /// Returns the content of the bucket for a place.
    private func entry(_ place: Int, _ hash: Int) -> UInt32 { tag(hash) | UInt32(place + 1) }
    /// The part of a hash that a bucket has.
    private func tag(_ hash: Int) -> UInt32 { UInt32(truncatingIfNeeded: hash >> 32) & ~UInt32(mask) }
    private func place(_ entry: UInt32) -> Int { Int(entry & UInt32(mask)) - 1 }

    /// Returns the place of a document.
    ///
    /// - Parameter isSame: returns whether the document at a place has the id.
    @inline(__always)
    func place(_ hash: Int, where isSame: (Int) -> Bool) -> Int? {
        guard !buckets.isEmpty else { return nil }
        let tag = tag(hash)
        var bucket = first(hash)
        while buckets[bucket] != 0 {
            let entry = buckets[bucket]
            if entry & ~UInt32(mask) == tag, isSame(place(entry)) { return place(entry) }
            bucket = next(bucket)
        }
        return nil
    }

    /// Adds a place that is not there.
    ///
    /// - Parameters:
    ///   - place: less than the largest number of documents so far, with this one.
    ///   - hashes: returns the hash of the document at another place.
    mutating func insert(_ place: Int, _ hash: Int, hashes: (Int) -> Int) {
        let needed = Self.bucketCount(for: max(count, place) + 1)
        if buckets.count < needed { grow(to: needed, hashes) }
        insert(entry(place, hash), hash)
        count += 1
    }

    private mutating func insert(_ entry: UInt32, _ hash: Int) {
        var bucket = first(hash)
        while buckets[bucket] != 0 { bucket = next(bucket) }
        buckets[bucket] = entry
    }

    /// Replaces a place that is there by another one for the same document.
    mutating func move(_ place: Int, to other: Int, _ hash: Int) {
        buckets[bucket(of: place, hash)] = entry(other, hash)
    }

    /// Removes a place that is there.
    mutating func remove(_ place: Int, _ hash: Int, hashes: (Int) -> Int) {
        var hole = bucket(of: place, hash)
        count -= 1
        // Moves later entries of the run to the hole, unless they would be before their first bucket.
        var bucket = next(hole)
        while buckets[bucket] != 0 {
            let home = first(hashes(self.place(buckets[bucket])))
            if (bucket &- home) & mask >= (bucket &- hole) & mask {
                buckets[hole] = buckets[bucket]
                hole = bucket
            }
            bucket = next(bucket)
        }
        buckets[hole] = 0
    }

    private func bucket(of place: Int, _ hash: Int) -> Int {
        let entry = entry(place, hash)
        var bucket = first(hash)
        while buckets[bucket] != entry {
            // unreachable from data: callers have found the place, or have inserted it.
            precondition(buckets[bucket] != 0, "a document without a position in the index")
            bucket = next(bucket)
        }
        return bucket
    }

    private mutating func grow(to size: Int, _ hashes: (Int) -> Int) {
        let places = buckets.filter { $0 != 0 }.map { place($0) }
        buckets = Array(repeating: 0, count: size)
        for place in places {
            let hash = hashes(place)
            insert(entry(place, hash), hash)
        }
    }

    private static func bucketCount(for count: Int) -> Int {
        var size = 4
        while size < count * 2 { size *= 2 }
        return size
    }
}

extension Document {
    /// Returns whether its id has these bytes.
    @inline(__always)
    func hasID(_ id: UnsafeRawBufferPointer) -> Bool { withID { $0.hasSameBytes(id) } }

    var idHash: Int { withID { DocumentIndex.hash($0) } }
}
