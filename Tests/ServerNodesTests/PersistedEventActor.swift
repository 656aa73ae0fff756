import Trebuchet

/// Sends events that outlast their owners.
@Trebuchet
distributed actor PersistedEventActor {
    @StreamedEvents(persisted: true) var strikes: Int

    distributed func strike(_ number: Int) { $strikes.send(number) }
}
