public enum TrebuchetClusterStub {}
