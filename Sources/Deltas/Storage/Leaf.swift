/// Elements that stand one behind the other, whatever their type: what trees of leaves are made of.
///
/// `@unchecked Sendable`: a leaf is changed only by who has just seen that nobody else refers to it.
class AnyLeaf: @unchecked Sendable {
    func copy() -> AnyLeaf { fatalError("of a subclass") }
    /// The hashes of the ids of the elements.
    func hashes() -> [Int] { fatalError("of a subclass") }
    /// Moves the elements from a place on into a leaf of their own.
    func split(at place: Int) -> AnyLeaf { fatalError("of a subclass") }
    /// Appends the elements of a leaf of the same kind.
    func append(_ other: AnyLeaf) { fatalError("of a subclass") }
}

/// `@unchecked Sendable` as `AnyLeaf`.
final class Leaf<Element: Identifiable & Sendable>: AnyLeaf, @unchecked Sendable {
    var elements: [Element]

    init(_ elements: [Element]) { self.elements = elements }

    override func copy() -> AnyLeaf { Leaf(elements) }

    override func hashes() -> [Int] { elements.map(\.id.hashValue) }

    override func split(at place: Int) -> AnyLeaf {
        let tail = Leaf(Array(elements[place...]))
        elements.removeSubrange(place...)
        return tail
    }

    override func append(_ other: AnyLeaf) {
        elements += unsafeDowncast(other, to: Leaf.self).elements
    }
}
