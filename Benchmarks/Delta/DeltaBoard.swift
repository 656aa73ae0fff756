import Glibc
import Trebuchet

struct DeltaItem: Codable, Sendable, Identifiable {
    let id: Int
    var title: String
    var count = 0

    static func items(_ count: Int) -> [DeltaItem] {
        (0..<count).map { DeltaItem(id: $0, title: "element number \($0)") }
    }
}

/// A board of items, of which one changes at a time.
protocol DeltaBenchBoard: DistributedActor where ActorSystem == TrebuchetActorSystem {
    associatedtype Items: Codable, Sendable, RandomAccessCollection<DeltaItem> where Items.Index == Int

    nonisolated var observeItems: StateObservation<Self, Items> { get }
    distributed func update(_ id: Int, _ count: Int)
    distributed func processorTime() -> Int
}

/// Knows what changed in it.
@Trebuchet
distributed actor KeyedBoard: DeltaBenchBoard {
    @StreamedState var items: KeyedCollection<DeltaItem>

    init(count: Int, actorSystem: TrebuchetActorSystem) {
        items = KeyedCollection(DeltaItem.items(count))
        self.actorSystem = actorSystem
    }

    distributed func update(_ id: Int, _ count: Int) { items.update(id: id) { $0.count = count } }
    /// Nanoseconds that the reactor's thread has worked so far.
    distributed func processorTime() -> Int { ProcessorTime.thread }
}

/// Is encoded and compared for each version.
@Trebuchet
distributed actor ComparedBoard: DeltaBenchBoard {
    @StreamedState var items: [DeltaItem]

    init(count: Int, actorSystem: TrebuchetActorSystem) {
        items = DeltaItem.items(count)
        self.actorSystem = actorSystem
    }

    distributed func update(_ id: Int, _ count: Int) { items[id].count = count }
    distributed func processorTime() -> Int { ProcessorTime.thread }
}

enum ProcessorTime {
    /// Of this thread, in nanoseconds.
    static var thread: Int { read(CLOCK_THREAD_CPUTIME_ID) }
    /// Of all threads of the process.
    static var process: Int { read(CLOCK_PROCESS_CPUTIME_ID) }

    private static func read(_ clock: clockid_t) -> Int {
        var time = timespec()
        clock_gettime(clock, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
