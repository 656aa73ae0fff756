internal import Platform
internal import TrebuchetWire

/// Caches what the conditions of queries read in one document: arrays for `contains`, and objects for fields within them. Then any
/// number of conditions read each of them twice. Pure.
package struct ConditionCache {
    /// The elements of an array.
    private struct Elements {
        /// For each element the upper half of its hash, and its position in the text of the array. Sorted when it is complete.
        var places: [UInt64] = []
        /// The index of the rest in the text of the array; nil when all are there.
        var rest: Int? = 1

        static let hashBits: UInt64 = ~0xFFFF_FFFF

        /// Returns the index of the first place with this hash or a greater one.
        func index(of hash: UInt64) -> Int {
            var (low, high) = (0, places.count)
            while low < high {
                let middle = (low + high) / 2
                if places[middle] < hash { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }

    /// An object that has fields of conditions.
    private enum Parent {
        /// One condition has read it.
        case read
        /// It is too small for an index, or no object.
        case unindexed
        case indexed(JSONObject)
    }

    /// The size in bytes from which an object is indexed.
    private static let minimumIndexedBytes = 1 << 10

    /// By fields; nil after the first condition, which compares the elements.
    private var arrays: [FieldPath: Elements?] = [:]
    /// By the paths of the objects.
    private var parents: [ByteText: Parent] = [:]

    package init() {}

    /// The approximate size in bytes.
    package var byteCount: Int {
        let elements = arrays.values.reduce(0) { $0 + 8 * ($1?.places.capacity ?? 0) }
        return parents.values.reduce(elements) { sum, parent in
            if case .indexed(let object) = parent { sum + object.buffer.count } else { sum }
        }
    }

    // MARK: Fields

    /// Calls `body` with the canonical text of a value; nil when it is missing.
    ///
    /// - Parameter document: the same document in each call.
    mutating func withText<Result>(
        of field: FieldPath, in document: Document, _ body: (UnsafeRawBufferPointer?) throws -> Result
    ) rethrows -> Result {
        guard let parent = field.parent, case .field(let names)? = field.location, let name = names.last else {
            return try field.withText(in: document, body)
        }
        switch parents[parent] {
        case nil: parents[parent] = .read
        case .read:
            parents[parent] = FieldPath.withText(of: names.dropLast(), in: document) { text -> Parent in
                guard let text, text.count >= Self.minimumIndexedBytes, CanonicalJSON.isObject(text) else {
                    return .unindexed
                }
                var index = JSONObjectIndex()
                index.scan(text)
                return .indexed(JSONObject(text, index))
            }
        case .unindexed, .indexed: break
        }
        guard case .indexed(let object) = parents[parent] else { return try field.withText(in: document, body) }
        return try object.withText(of: name, body)
    }

    // MARK: Arrays

    /// Returns whether a field is an array with the operand; nil when the time is up and the call must be repeated.
    ///
    /// - Parameter document: the same document in each call.
    mutating func contain(
        _ operand: ConditionOperand, in field: FieldPath, of document: Document, _ slice: inout ScanSlice
    ) -> Bool? {
        guard let known = arrays.updateValue(nil, forKey: field) else { return compare(operand, field, document) }
        var elements = known ?? Elements()
        if let rest = elements.rest {
            elements.rest = withText(of: field, in: document) { text -> Int? in
                guard let text, JSONOrder.kind(text) == .array, let base = text.baseAddress else { return nil }
                return CanonicalJSON.elements(of: text, from: rest) { element in
                    let hash = UInt64(truncatingIfNeeded: ValueHash.of(element)) & Elements.hashBits
                    elements.places.append(hash | UInt64(element.baseAddress.map { $0 - base } ?? 0))
                    return !slice.isOver(afterSteps: 1)
                }
            }
            if elements.rest == nil { elements.places.sort() }
        }
        arrays[field] = elements
        guard elements.rest == nil else { return nil }
        return find(operand, in: elements, of: field, document)
    }

    private mutating func find(
        _ operand: ConditionOperand, in elements: borrowing Elements, of field: FieldPath, _ document: Document
    ) -> Bool {
        let hash = UInt64(truncatingIfNeeded: operand.hash) & Elements.hashBits
        let first = elements.index(of: hash)
        let candidates = elements.places[first...].prefix { $0 & Elements.hashBits == hash }
        guard !candidates.isEmpty else { return false }
        let isExact = !document.fields.hasWideNumbers
        return withText(of: field, in: document) { text in
            guard let text else { return false }
            return candidates.contains { place in
                let start = Int(place & ~Elements.hashBits)
                var scan = CanonicalJSON.Scan()
                let end = scan.end(ofValueAt: start, text)
                return operand.isEqual(to: UnsafeRawBufferPointer(rebasing: text[start..<end]), isExact: isExact)
            }
        }
    }

    private mutating func compare(_ operand: ConditionOperand, _ field: FieldPath, _ document: Document) -> Bool {
        let isExact = !document.fields.hasWideNumbers
        return withText(of: field, in: document) { text in
            guard let text, JSONOrder.kind(text) == .array else { return false }
            return CanonicalJSON.firstElement(text) { operand.isEqual(to: $0, isExact: isExact) ? true : nil } ?? false
        }
    }
}
