import Testing

@testable import Deltas

@Suite("Storage shared by copies of a keyed collection")
struct SharingTests {
    /// Leaves and arrays of one storage that the other does not have: those that a change copied.
    private func copied(_ new: KeyedCollection<Item>, from old: KeyedCollection<Item>) -> Int {
        let known = Set(arrays(old.store.tree)).union(arrays(old.store.labels))
        return Set(arrays(new.store.tree)).union(arrays(new.store.labels)).subtracting(known).count
    }

    private func arrays(_ tree: LeafTree) -> [UnsafeRawPointer] {
        tree.leaf.map { [UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque())] }
            ?? (tree.children.withUnsafeBytes { [$0.baseAddress!] } + tree.children.flatMap(arrays))
    }

    private func arrays(_ table: LabelTable) -> [UnsafeRawPointer] {
        table.entries.withUnsafeBytes { [$0.baseAddress!] }
            + table.branches.withUnsafeBytes { [$0.baseAddress!] } + table.branches.flatMap(arrays)
    }

    private func collection(_ count: Int) -> KeyedCollection<Item> {
        KeyedCollection((0..<count).map { Item(id: $0, title: "") })
    }

    @Test("an update of a collection with a retained copy copies one path", arguments: [10, 1_000, 100_000])
    func update(count: Int) {
        let old = collection(count)
        var new = old
        new.update(id: count / 2) { $0.title = "new" }
        let height = count == 10 ? 1 : count == 1_000 ? 3 : 4
        #expect((1...height).contains(copied(new, from: old)))
    }

    @Test("other changes copy a few paths, on average", arguments: [1_000, 10_000])
    func others(count: Int) {
        var items = collection(count)
        var copies = 0
        for number in 0..<64 {
            let old = items
            switch number % 4 {
            case 0: items.insert(Item(id: count + number, title: ""), at: count / 2)
            case 1: items.append(Item(id: count + number, title: ""))
            case 2: items.remove(id: number * 7)
            default: items.move(id: number * 11, to: count / 3)
            }
            // Pointers of freed memory would be mistaken for shared ones.
            withExtendedLifetime(old) { copies += copied(items, from: old) }
        }
        #expect(copies / 64 < 40, "\(copies) arrays were copied by 64 changes")
    }

    @Test("insertions at one index set few labels each", arguments: [1_000, 30_000])
    func labels(count: Int) {
        // Each insertion sets its own label; further changed labels show in the comparison afterwards.
        var items = collection(count)
        var changed = 0
        for number in 0..<3_000 {
            let before = items.store.tree.label
            items.insert(Item(id: count + number, title: ""), at: count / 2)
            changed += items.store.tree.label == before ? 0 : 1
        }
        // The whole tree was never relabeled.
        #expect(changed == 0)
        #expect(items.index(id: count) == count / 2 + 2_999)
    }

    @Test("a collection shrinks when most elements are removed")
    func shrinking() {
        var items = collection(10_000)
        for id in 0..<9_990 { items.remove(id: id) }
        #expect(Set(arrays(items.store.tree)).count <= 6)
        #expect(Set(arrays(items.store.labels)).count <= 24)
        items.removeAll()
        #expect(items.store.tree.isLeaf && items.store.labels.count == 0)
    }

    @Test("nodes have no more and no fewer parts than their bounds")
    func parts() {
        var items = collection(3_000)
        for number in 0..<3_000 {
            items.insert(Item(id: 3_000 + number, title: ""), at: (number * 7_919) % items.count)
            items.remove(id: (number * 1_237) % 3_000)
        }
        func check(_ tree: LeafTree, isRoot: Bool) {
            #expect(tree.partCount <= tree.maximumPartCount)
            #expect(tree.partCount >= (isRoot ? tree.isLeaf ? 0 : 2 : tree.maximumPartCount / 4))
            for child in tree.children { check(child, isRoot: false) }
        }
        check(items.store.tree, isRoot: true)
        #expect(items.store.labels.count == items.count)
    }
}
